"""Predicts clock cycles, and attributes them to layers."""

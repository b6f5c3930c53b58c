"""Compares arithmetics of training: float32, integers, logarithms."""

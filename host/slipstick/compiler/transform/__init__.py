"""Rewrites operations into forms that the array computes faster."""

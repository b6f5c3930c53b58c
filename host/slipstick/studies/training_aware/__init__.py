"""Compares rounding after a training with training that knows the format."""

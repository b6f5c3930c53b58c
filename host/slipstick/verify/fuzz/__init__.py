"""Tries damaged files on every parser: ``python -m slipstick.verify.fuzz``."""

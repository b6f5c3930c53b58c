"""Measures what each number format costs in LUTs, clock and power."""

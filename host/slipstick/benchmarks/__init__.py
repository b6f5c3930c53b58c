"""Benchmarks: ``python -m slipstick.benchmarks.NAME`` measures, and writes a report."""

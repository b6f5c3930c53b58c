"""Benchmark of the link under faults: lost, added and damaged bytes."""

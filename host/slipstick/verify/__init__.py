"""Checks that run for hours: random and damaged files, each held against what it must be."""

"""Benchmarks of many boards as one: how well a pool uses them, and what it does when they fail."""

"""Styles of memories, for the tools that map them to silicon: their ``ram_style``."""

MOMENTARY = "momentary"
"""Nobody takes a word later than the cycle after it was asked for: no register need hold it."""

"""Gowin: its PLL and the layout of its memories."""

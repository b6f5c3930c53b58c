"""Splits networks that exceed the chip: tiles, stripes, slices, streaming."""

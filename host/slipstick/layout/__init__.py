"""Layouts: a block placed, routed, checked and drawn with Debian's packages alone."""

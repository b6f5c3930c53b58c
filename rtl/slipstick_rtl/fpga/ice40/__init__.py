"""iCE40: its PLL."""

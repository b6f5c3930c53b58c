"""Studies of number formats: their cost in hardware and their accuracy."""

"""The core with the buses of systems on chip, for people who instantiate it elsewhere."""

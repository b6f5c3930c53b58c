"""The logarithmic number system: formats, arithmetic, and the hardware that does it."""

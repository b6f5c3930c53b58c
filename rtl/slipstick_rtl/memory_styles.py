"""What a memory's ``ram_style`` says to what maps it to silicon."""

MOMENTARY = "momentary"
"""Nobody takes a word later than the cycle after it was asked for: no register need hold it."""

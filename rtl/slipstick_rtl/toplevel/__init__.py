"""The core at the top of a chip: boards described, the gateware around it, a design as files."""

"""Operators on logarithmic (LNS) codes on the host."""

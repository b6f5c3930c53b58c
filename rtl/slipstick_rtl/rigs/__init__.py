"""Rigs: gateware that exists to be measured, alone and between registers."""

"""Assigns memory: activations by lifetime, constants, double buffers."""

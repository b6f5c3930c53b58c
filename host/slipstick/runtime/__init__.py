"""Runs a compiled program on a device: inputs in, steps, outputs out."""

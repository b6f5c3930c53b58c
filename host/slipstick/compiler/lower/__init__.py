"""Lowers graph nodes to operations of the device, or leaves them to the host."""

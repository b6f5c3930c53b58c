"""Compares ways of training on many devices: bytes on the wire, accuracy, images per second."""

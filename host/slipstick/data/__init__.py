"""Reads inputs and labels: images, NumPy files, idx files."""

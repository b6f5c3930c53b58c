"""Writes the instructions of operations, and assembles a program."""

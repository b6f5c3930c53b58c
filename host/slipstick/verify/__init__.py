"""Compares networks with their references; draws random ones; fuzzes the parsers."""

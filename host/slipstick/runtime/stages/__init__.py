"""Runs a network that is divided among several boards: see ``compiler.stages``."""

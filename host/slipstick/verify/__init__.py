"""Verification at scale: random networks held against their references."""

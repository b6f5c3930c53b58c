"""Divides a network among several boards: by layers (stages), or by output channels (shards)."""

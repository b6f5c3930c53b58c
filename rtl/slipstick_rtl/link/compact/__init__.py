"""The link of the compact engine: the same frames in less logic."""

"""Writers of network files: what tests, studies and random verification are made of."""

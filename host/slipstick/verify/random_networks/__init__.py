"""Random networks, held against their references: ``slipstick verify --random``."""

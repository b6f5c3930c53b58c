"""Random stimulus: programs, instructions, windows, requests, numbers."""

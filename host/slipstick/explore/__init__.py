"""Explores configurations: sweeps, estimates, the picture of the results."""

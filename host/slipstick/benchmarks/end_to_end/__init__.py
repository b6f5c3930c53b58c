"""Measures what a user gets: images through a modelled wire and the simulated core."""

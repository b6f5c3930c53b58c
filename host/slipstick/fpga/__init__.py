"""Builds bitstreams: synthesis, place and route, area estimates, programming a board."""

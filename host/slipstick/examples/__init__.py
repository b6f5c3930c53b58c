"""Inputs for the networks that come with Slipstick."""

"""A training step's products on a device: forward, input gradient, weight gradient."""

"""The handwritten digits: the embedded network and the demonstration."""

"""The framed link."""

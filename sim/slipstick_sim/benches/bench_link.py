"""The link against the golden endpoint: the same bytes in, the same bytes out, the same effects."""

"""The compiler's own description of a network: operations, tensors, rounding."""

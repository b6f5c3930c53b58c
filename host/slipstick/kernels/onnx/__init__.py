"""Operators of ONNX networks on the host, as Slipstick defines them."""

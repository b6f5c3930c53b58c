"""Makes operations of the device of nodes; each module enters its lowerings in ``table``."""

from . import convolutions, data_movement, elementwise, lns, onnx, pooling, products, select

__all__ = [
    "convolutions",
    "data_movement",
    "elementwise",
    "lns",
    "onnx",
    "pooling",
    "products",
    "select",
]

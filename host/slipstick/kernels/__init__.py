"""Computes layers on the host, in NumPy: TensorFlow Lite's integer semantics, bit for bit.

These kernels run the layers that the hardware does not, and compute the compiler's constants.
"""

from .dispatch import initial_state, run, run_graph, run_graph_from
from .lns.exact import exact
from .tflite.activation import activation_table, softmax
from .tflite.elementwise import add, dequantize, quantize
from .tflite.matrix import conv2d, depthwise_conv2d, fully_connected
from .tflite.pooling import average_pool2d, max_pool2d, mean, mean_multiplier
from .tflite.rearrange import pad
from .tflite.scaling import (
    ADD_LEFT_SHIFT,
    AddParameters,
    activation_range,
    add_parameters,
    add_tables,
    layer_multipliers,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scalar,
)

__all__ = [
    "ADD_LEFT_SHIFT",
    "AddParameters",
    "activation_range",
    "activation_table",
    "add",
    "add_parameters",
    "add_tables",
    "average_pool2d",
    "conv2d",
    "depthwise_conv2d",
    "exact",
    "dequantize",
    "fully_connected",
    "initial_state",
    "layer_multipliers",
    "max_pool2d",
    "mean",
    "mean_multiplier",
    "multiply_by_quantized_multiplier",
    "pad",
    "quantize",
    "quantize_multiplier",
    "run",
    "run_graph",
    "run_graph_from",
    "scalar",
    "softmax",
]

"""TFLite operators by their schema names, each turned into an operator of the graph."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..errors import UnsupportedError
from ..graph import Tensor
from ..kernels.scaling import add_parameters
from .tflite_operator import Operator, single
from .tflite_windows import (
    Normalised,
    average_pool2d,
    check_bias,
    check_weights,
    conv2d,
    depthwise_conv2d,
    max_pool2d,
)

_INDICES = ("int32", "int64")


def _fully_connected(operator: Operator) -> Normalised:
    operator.require_operands(2, 3)
    x, output = operator.activation(0), operator.require_output()
    weights, _ = operator.constant(1, ("int8",))
    operator.require_rank(weights, 2)
    if operator.options["WeightsFormat"]:
        operator.refuse(f"weights format must be 0, not {operator.options['WeightsFormat']}")
    check_weights(operator, weights, axis=0)
    outputs, inputs = weights.shape
    rows, rest = divmod(math.prod(x.shape), inputs)
    keep = bool(operator.options["KeepNumDims"])
    if rest or keep and x.shape[-1] != inputs:
        operator.reject(f"weights of {inputs} inputs must divide an input of {x.shape}")
    if output.shape[-1] != outputs or math.prod(output.shape) != rows * outputs:
        operator.reject(f"output must be {rows} rows of {outputs}, not {output.shape}")
    attributes = {"activation": operator.fused_activation(), "keep_dimensions": keep}
    return "fully_connected", (x.name, weights.name, check_bias(operator, outputs)), attributes


def _add(operator: Operator) -> Normalised:
    operator.require_operands(2, 2)
    output = operator.require_output()
    operands = [tensor for tensor in operator.inputs if tensor is not None]
    if all(tensor.data is not None for tensor in operands):
        operator.refuse("one of the inputs must be computed, and both are constants")
    for index, tensor in enumerate(operands):
        operator.require_type(tensor, f"input {index}", ("int8",))
        rank, wanted = len(tensor.shape), len(output.shape)
        if rank > wanted or tensor.data is None and rank != wanted:
            operator.refuse(f"input {index} must have the output's {wanted} dimensions, not {rank}")
    a, b = operands
    try:
        operator.require_shape(np.broadcast_shapes(a.shape, b.shape))
    except ValueError:
        operator.reject(f"inputs of {a.shape} and {b.shape} must broadcast together")
    quantizations = [tensor.quantization for tensor in (a, b, output)]
    try:
        add_parameters(*(item for item in quantizations if item is not None))
    except UnsupportedError as error:
        operator.refuse(str(error))
    return "add", (a.name, b.name), {"activation": operator.fused_activation()}


def _mean(operator: Operator) -> Normalised:
    operator.require_operands(2, 2)
    x = operator.activation(0)
    operator.require_output()
    rank = len(x.shape)
    _, data = operator.constant(1, _INDICES)
    listed = data.ravel().tolist()
    if not listed or any(not -rank <= axis < rank for axis in listed):
        operator.reject(f"axes must be within {-rank}..{rank - 1}, not {listed}")
    axes = tuple(sorted({axis % rank for axis in listed}))
    if 0 in axes:
        operator.refuse(f"axes must leave out 0, the batch, not {listed}")
    keep = bool(operator.options["KeepDims"])
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    short = [size for axis, size in enumerate(x.shape) if axis not in axes]
    operator.require_shape(tuple(kept if keep else short))
    return "mean", (x.name,), {"axes": axes, "keep_dimensions": keep}


def _reshape(operator: Operator) -> Normalised:
    operator.require_operands(1, 2)
    x, output = operator.activation(0), operator.require_output()
    # the output's shape says it all; a second input only must not be computed
    if len(operator.inputs) > 1:
        operator.constant(1, _INDICES)
    if math.prod(x.shape) != math.prod(output.shape):
        operator.reject(f"output must hold as much as {x.shape}, not {output.shape}")
    operator.require_same_quantization(x)
    return "reshape", (x.name,), {"shape": output.shape}


def _pad(operator: Operator) -> Normalised:
    operator.require_operands(2, 3)
    x, output = operator.activation(0), operator.require_output()
    operator.require_same_quantization(x)
    tensor, data = operator.constant(1, _INDICES)
    if data.shape != (len(x.shape), 2):
        operator.reject(f"paddings must have shape ({len(x.shape)}, 2), not {tensor.shape}")
    padding = tuple((int(before), int(after)) for before, after in data)
    if any(size < 0 for pair in padding for size in pair):
        operator.reject(f"paddings must be at least 0, not {padding}")
    if padding[0] != (0, 0):
        operator.refuse(f"paddings of axis 0, the batch, must be 0, not {padding[0]}")
    operator.require_shape(
        tuple(size + sum(pair) for size, pair in zip(x.shape, padding, strict=True))
    )
    value = single(output)[1]
    if len(operator.inputs) == 3:
        tensor, codes = operator.constant(2, ("int8",))
        if codes.size != 1:
            operator.reject(f"the padding value must be one code, not {tensor.shape}")
        value = int(codes.ravel()[0])
    return "pad", (x.name,), {"padding": padding, "value": value}


def _softmax(operator: Operator) -> Normalised:
    x = _unary(operator)
    operator.require_output_quantization(1 / 256, -128)
    beta = float(operator.options["Beta"])
    if not (math.isfinite(beta) and beta > 0):
        operator.reject(f"beta must be positive and finite, not {beta}")
    return "softmax", (x.name,), {"beta": beta}


def _unary(
    operator: Operator,
    sources: tuple[str, ...] = ("int8",),
    targets: tuple[str, ...] = ("int8",),
) -> Tensor:
    """The input of an operator that keeps the shape."""
    operator.require_operands(1, 1)
    x = operator.activation(0, sources)
    operator.require_output(targets)
    operator.require_shape(x.shape)
    return x


def _relu(name: str) -> Callable[[Operator], Normalised]:
    return lambda operator: (name, (_unary(operator).name,), {})


def _logistic(operator: Operator) -> Normalised:
    x = _unary(operator)
    operator.require_output_quantization(1 / 256, -128)
    return "logistic", (x.name,), {}


def _tanh(operator: Operator) -> Normalised:
    x = _unary(operator)
    operator.require_output_quantization(1 / 128, 0)
    return "tanh", (x.name,), {}


def _hard_swish(operator: Operator) -> Normalised:
    x = _unary(operator)
    scale, output_scale = single(x)[0], single(operator.output)[0]
    # the reference's 16-bit arithmetic only shifts right
    if scale / 128 >= output_scale:
        operator.refuse(f"output scale must be above {scale / 128:g}, not {output_scale:g}")
    return "hard_swish", (x.name,), {}


def _quantize(operator: Operator) -> Normalised:
    x = _unary(operator, ("float32", "int8", "uint8"), ("int8", "uint8"))
    return "quantize", (x.name,), {}


def _dequantize(operator: Operator) -> Normalised:
    return "dequantize", (_unary(operator, ("int8", "uint8"), ("float32",)).name,), {}


OPERATORS: Mapping[str, Callable[[Operator], Normalised]] = {
    "CONV_2D": conv2d,
    "DEPTHWISE_CONV_2D": depthwise_conv2d,
    "FULLY_CONNECTED": _fully_connected,
    "ADD": _add,
    "AVERAGE_POOL_2D": average_pool2d,
    "MAX_POOL_2D": max_pool2d,
    "MEAN": _mean,
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "PAD": _pad,
    "PADV2": _pad,
    "SOFTMAX": _softmax,
    "RELU": _relu("relu"),
    "RELU6": _relu("relu6"),
    "RELU_N1_TO_1": _relu("relu_n1_to_1"),
    "LOGISTIC": _logistic,
    "TANH": _tanh,
    "HARD_SWISH": _hard_swish,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
}
"""What the front-end reads."""

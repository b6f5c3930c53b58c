"""TFLite operators that compute code by code, or over axes: sums, products, activations, means."""

import math
from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedError
from ...graph import Quantization, Tensor
from ...kernels.tflite.binary import sub_parameters
from ...kernels.tflite.scaling import AddParameters, add_parameters
from ...operators import Unary
from ..files import quoted
from .operator import EITHER, INDICES, Operator, single
from .windows import Normalised

_REAL = (("float32",), ("float32",))

LARGEST_OPTION = 1e6
"""Magnitude of the numbers among a function's options."""


def add(operator: Operator) -> Normalised:
    """ADD."""
    return _sum(operator, "add", add_parameters)


def sub(operator: Operator) -> Normalised:
    """SUB."""
    return _sum(operator, "sub", sub_parameters)


def mul(operator: Operator) -> Normalised:
    """MUL."""
    a, b = _broadcast(operator)
    return "mul", (a.name, b.name), {"activation": operator.fused_activation()}


def squared_difference(operator: Operator) -> Normalised:
    """SQUARED_DIFFERENCE."""
    a, b = _broadcast(operator)
    return "squared_difference", (a.name, b.name), {}


def maximum(operator: Operator) -> Normalised:
    """MAXIMUM, of codes: all tensors have one quantisation."""
    return _choice(operator, "maximum")


def minimum(operator: Operator) -> Normalised:
    """MINIMUM, as ``maximum``."""
    return _choice(operator, "minimum")


def prelu(operator: Operator) -> Normalised:
    """PRELU: a factor, as a rule one a channel, where the input is negative."""
    a, b = _broadcast(operator)
    operator.require_shape(a.shape)
    return "prelu", (operator.activation(0, operator.either()).name, b.name), {}


def _choice(operator: Operator, name: str) -> Normalised:
    a, b = _broadcast(operator)
    for tensor in (a, b):
        operator.require_same_quantization(tensor)
    return name, (a.name, b.name), {}


def _sum(
    operator: Operator,
    name: str,
    parameters: Callable[[Quantization, Quantization, Quantization], AddParameters],
) -> Normalised:
    tensors = (*_broadcast(operator), operator.output)
    quantizations = [tensor.quantization for tensor in tensors]
    try:
        if operator.output.dtype != "float32":
            parameters(*(item for item in quantizations if item is not None))
    except UnsupportedError as error:
        operator.refuse(str(error))
    inputs = tensors[0].name, tensors[1].name
    return name, inputs, {"activation": operator.fused_activation()}


def _broadcast(operator: Operator) -> tuple[Tensor, Tensor]:
    """Two operands that broadcast to the output's shape, one of them computed."""
    operator.require_operands(2, 2)
    dtypes = operator.either()
    output = operator.require_output(dtypes)
    operands = [operator.operand(index, dtypes) for index in (0, 1)]
    if all(tensor.data is not None for tensor in operands):
        operator.refuse("one of the inputs must be computed, and both are constants")
    for index, tensor in enumerate(operands):
        rank, wanted = len(tensor.shape), len(output.shape)
        if rank > wanted or tensor.data is None and rank != wanted:
            operator.refuse(f"input {index} must have the output's {wanted} dimensions, not {rank}")
    a, b = operands
    try:
        operator.require_shape(np.broadcast_shapes(a.shape, b.shape))
    except ValueError:
        operator.reject(f"inputs of {a.shape} and {b.shape} must broadcast together")
    return a, b


def mean(operator: Operator) -> Normalised:
    """MEAN over any axes but the batch."""
    return _reduction(operator, "mean")


def reduce_sum(operator: Operator) -> Normalised:
    """SUM over any axes but the batch."""
    return _reduction(operator, "reduce_sum")


def reduce_max(operator: Operator) -> Normalised:
    """REDUCE_MAX, which keeps the quantisation."""
    return _reduction(operator, "reduce_max")


def reduce_min(operator: Operator) -> Normalised:
    """REDUCE_MIN, which keeps the quantisation."""
    return _reduction(operator, "reduce_min")


def _reduction(operator: Operator, name: str) -> Normalised:
    operator.require_operands(2, 2)
    x = operator.activation(0)
    operator.require_output()
    if name in ("reduce_max", "reduce_min"):
        operator.require_same_quantization(x)
    extra = x.name in operator.lifted
    rank = len(x.shape) - extra
    _, data = operator.constant(1, INDICES)
    listed = data.ravel().tolist()
    if not listed or any(not -rank <= axis < rank for axis in listed):
        operator.reject(f"axes must be within {-rank}..{rank - 1}, not {listed}")
    axes = tuple(sorted({axis % rank + extra for axis in listed}))
    if 0 in axes:
        operator.refuse(f"axes must leave out 0, the batch, not {listed}")
    keep = bool(operator.options["KeepDims"])
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    short = [size for axis, size in enumerate(x.shape) if axis not in axes]
    operator.require_shape(tuple(kept if keep else short))
    return name, (x.name,), {"axes": axes, "keep_dimensions": keep}


def matmul(operator: Operator) -> Normalised:
    """BATCH_MATMUL of two activations, or of one and a constant."""
    operator.require_operands(2, 2)
    output = operator.require_output()
    tensors = [operator.operand(index) for index in (0, 1)]
    if all(tensor.data is not None for tensor in tensors):
        operator.refuse("one of the inputs must be computed, and both are constants")
    flips = [bool(operator.options[key]) for key in ("AdjX", "AdjY")]
    shapes = []
    for index, (tensor, flip) in enumerate(zip(tensors, flips, strict=True)):
        if len(tensor.shape) != len(output.shape) or len(tensor.shape) < 3:
            operator.refuse(
                f"input {index} must have a batch and the output's {len(output.shape)} dimensions,"
                f" not shape {operator.shape(tensor)}"
            )
        rows, columns = tensor.shape[-2:][:: -1 if flip else 1]
        shapes.append((tensor.shape[:-2], rows, columns))
    (outer_a, rows, inner), (outer_b, other, columns) = shapes
    try:
        outer = np.broadcast_shapes(outer_a, outer_b)
    except ValueError:
        operator.reject(f"inputs of {outer_a} and {outer_b} matrices must broadcast together")
    if inner != other:
        operator.reject(f"{inner} columns must meet as many rows, not {other}")
    operator.require_shape((*outer, rows, columns))
    attributes = {"transpose_a": flips[0], "transpose_b": flips[1]}
    return "matmul", (tensors[0].name, tensors[1].name), attributes


def arg_max(operator: Operator) -> Normalised:
    """ARG_MAX."""
    return _place(operator, "arg_max")


def arg_min(operator: Operator) -> Normalised:
    """ARG_MIN."""
    return _place(operator, "arg_min")


def _place(operator: Operator, name: str) -> Normalised:
    operator.require_operands(2, 2)
    x = operator.activation(0, EITHER)
    operator.require_output(INDICES)
    axis = operator.axis(operator.integers(1, 1, "axis")[0], x)
    operator.require_shape((*x.shape[:axis], *x.shape[axis + 1 :]))
    return name, (x.name,), {"axis": axis}


def same_shape(
    operator: Operator,
    sources: tuple[str, ...] = ("int8",),
    targets: tuple[str, ...] = ("int8",),
) -> Tensor:
    """The input of an operator that keeps the shape."""
    operator.require_operands(1, 1)
    x = operator.activation(0, sources)
    operator.require_output(targets)
    operator.require_shape(x.shape)
    own, made = operator.shape(x), operator.shape(operator.output)
    if own != made:
        # runtimes take the sizes from one or the other
        operator.refuse(f"output {quoted(operator.output.name)} must be {own}, not {made}")
    return x


def either(operator: Operator) -> Tensor:
    """As ``same_shape``, of codes or of float32 numbers."""
    return same_shape(operator, operator.either(), operator.either())


def unary(function: Unary) -> Callable[[Operator], Normalised]:
    """A function of one number: of codes or float32 numbers, or of float32 numbers only."""
    tflite = function.tflite
    assert tflite is not None

    def normalise(operator: Operator) -> Normalised:
        x = either(operator) if function.tabulated else same_shape(operator, *_REAL)
        if tflite.result is not None and x.dtype != "float32":
            operator.require_output_quantization(*tflite.result)
        attributes = {}
        for name, field in tflite.fields.items():
            attributes[name] = float(operator.options[field])
            if not abs(attributes[name]) <= LARGEST_OPTION:
                operator.reject(f"{name} must be finite and at most 1e6, not {attributes[name]}")
        return function.name, (x.name,), attributes

    return normalise


def div(operator: Operator) -> Normalised:
    """DIV, of float32 numbers."""
    operator.require_output(("float32",))
    a, b = _broadcast(operator)
    return "div", (a.name, b.name), {"activation": operator.fused_activation()}


def log_softmax(operator: Operator) -> Normalised:
    """LOG_SOFTMAX, whose output has one quantisation only."""
    x = either(operator)
    if x.dtype != "float32":
        operator.require_output_quantization(1 / 16, 127)
    return "log_softmax", (x.name,), {}


def softmax(operator: Operator) -> Normalised:
    """SOFTMAX."""
    x = either(operator)
    if x.dtype != "float32":
        operator.require_output_quantization(1 / 256, -128)
    beta = float(operator.options["Beta"])
    if not (math.isfinite(beta) and beta > 0):
        operator.reject(f"beta must be positive and finite, not {beta}")
    return "softmax", (x.name,), {"beta": beta}


def hard_swish(operator: Operator) -> Normalised:
    """HARD_SWISH."""
    x = either(operator)
    scale, output_scale = single(x)[0], single(operator.output)[0]
    # the reference's 16-bit arithmetic only shifts right
    if x.dtype != "float32" and scale / 128 >= output_scale:
        operator.refuse(f"output scale must be above {scale / 128:g}, not {output_scale:g}")
    return "hard_swish", (x.name,), {}


def quantize(operator: Operator) -> Normalised:
    """QUANTIZE."""
    x = same_shape(operator, ("float32", "int8", "uint8"), ("int8", "uint8"))
    return "quantize", (x.name,), {}


def dequantize(operator: Operator) -> Normalised:
    """DEQUANTIZE."""
    return "dequantize", (same_shape(operator, ("int8", "uint8"), ("float32",)).name,), {}

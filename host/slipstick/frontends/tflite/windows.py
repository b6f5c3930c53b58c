"""TFLite operators that slide a window: convolutions and pooling, with explicit padding."""

import math
from collections.abc import Callable
from typing import Any

from ...graph import Tensor
from ...operators import Pooling
from ..files import MAXIMUM_ACTIVATION, quoted
from .operator import INDICES, Operator, single

Normalised = tuple[str, tuple[str, ...], dict[str, Any]]
"""The graph's operator name, its inputs, its attributes."""

MAXIMUM_STEP = 4096
"""Largest stride, dilation and window: larger ones are nonsense, and would cost memory."""

_SAME, _VALID = 0, 1

_BIAS_TOLERANCE = 0.02
"""By how many codes of the result the units of a bias and of its sum may differ."""


def conv2d(operator: Operator) -> Normalised:
    """CONV_2D: weights OHWI, groups where they have fewer channels than the input."""
    x, weights, inputs = _layer(operator, axis=0)
    filters, height, width, channels = weights.shape
    groups = x.shape[3] // channels
    if groups * channels != x.shape[3] or filters % groups:
        operator.reject(
            f"{filters} filters of {channels} channels must divide evenly among"
            f" {x.shape[3]} input channels"
        )
    attributes = _convolution(operator, x, (height, width), filters) | {"groups": groups}
    return "conv2d", inputs, attributes


def depthwise_conv2d(operator: Operator) -> Normalised:
    """DEPTHWISE_CONV_2D: weights 1HWO."""
    x, weights, inputs = _layer(operator, axis=3)
    one, height, width, filters = weights.shape
    multiplier = filters // x.shape[3]
    if one != 1 or multiplier * x.shape[3] != filters:
        operator.reject(
            f"weights must be 1 x height x width x a multiple of {x.shape[3]}, not {weights.shape}"
        )
    # the shapes say it too, but the reference takes the option: 0 makes no results at all
    if operator.options["DepthMultiplier"] != multiplier:
        operator.reject(
            f"depth multiplier must be {multiplier}, not {operator.options['DepthMultiplier']}"
        )
    attributes = _convolution(operator, x, (height, width), filters) | {"multiplier": multiplier}
    return "depthwise_conv2d", inputs, attributes


def transpose_conv2d(operator: Operator) -> Normalised:
    """TRANSPOSE_CONV: the output's shape, weights OHWI, x, and a bias if wanted."""
    operator.require_operands(3, 4)
    x, output = operator.activation(2), operator.require_output()
    weights, _ = operator.constant(1, ("int8",))
    operator.constant(0, INDICES)
    for tensor in (x, weights, output):
        operator.require_rank(tensor, 4)
    check_weights(operator, weights, 0)
    filters, *kernel, channels = weights.shape
    if (channels, filters) != (x.shape[3], output.shape[3]):
        operator.reject(
            f"weights must be {output.shape[3]} x height x width x {x.shape[3]},"
            f" not {weights.shape}"
        )
    # the output slides over the input as a convolution's input over its output
    stride = _pair(operator, "stride", "StrideH", "StrideW")
    sizes, padding = _places(operator, output.shape[1:3], stride, tuple(kernel))
    if tuple(sizes) != x.shape[1:3]:
        operator.reject(f"an output of {output.shape} must have an input of {sizes}, not {x.shape}")
    whole = [size * step + taps for size, step, taps in zip(sizes, stride, kernel, strict=True)]
    if math.prod(whole) * filters > MAXIMUM_ACTIVATION:
        operator.refuse(f"the whole result must have at most {MAXIMUM_ACTIVATION} elements")
    inputs = (x.name, weights.name, check_bias(operator, filters, 3))
    activation = operator.fused_activation()
    attributes = {"stride": stride, "padding": tuple(padding[::2]), "activation": activation}
    return "transpose_conv2d", inputs, attributes


def fully_connected(operator: Operator) -> Normalised:
    """FULLY_CONNECTED: weights OI, which may have a zero point beside one scale."""
    operator.require_operands(2, 3)
    dtypes = operator.either()
    x, output = operator.activation(0, dtypes), operator.require_output(dtypes)
    weights, _ = operator.constant(1, dtypes)
    operator.require_rank(weights, 2)
    if operator.options["WeightsFormat"]:
        operator.refuse(f"weights format must be 0, not {operator.options['WeightsFormat']}")
    if x.dtype != "float32":
        check_weights(operator, weights, axis=0, shifted=True)
    outputs, inputs = weights.shape
    rows, rest = divmod(math.prod(x.shape), inputs)
    keep = bool(operator.options["KeepNumDims"])
    if rest or keep and x.shape[-1] != inputs:
        operator.reject(f"weights of {inputs} inputs must divide an input of {x.shape}")
    if output.shape[-1] != outputs or math.prod(output.shape) != rows * outputs:
        operator.reject(f"output must be {rows} rows of {outputs}, not {output.shape}")
    _check_bias_scale(operator, weights)
    attributes = {"activation": operator.fused_activation(), "keep_dimensions": keep}
    return "fully_connected", (x.name, weights.name, check_bias(operator, outputs)), attributes


def average_pool2d(operator: Operator) -> Normalised:
    """AVERAGE_POOL_2D: of uint8 codes, which are not negative, ties go up."""
    name, inputs, attributes = _pool(operator, "average_pool2d")
    return name, inputs, attributes | {"ties": "up"} if operator.legacy else attributes


def pooling(record: Pooling) -> Callable[[Operator], Normalised]:
    """A pooling operator."""
    return lambda operator: _pool(operator, record.name)


def check_weights(operator: Operator, weights: Tensor, axis: int, *, shifted: bool = False) -> None:
    """Weights with one scale or one an output channel.

    Zero points are for uint8; and for a single scale, if ``shifted``: the reference ignores others.
    """
    if weights.quantization is None:
        operator.reject(f"weights {quoted(weights.name)} must have a scale, and have none")
    zero_points = weights.quantization.zero_point
    single_shift = shifted and len(zero_points) == 1
    if zero_points.any() and not (single_shift or operator.legacy):
        which = ", which have a scale a channel," if shifted else ""
        operator.refuse(
            f"zero points of weights {quoted(weights.name)}{which} must be 0,"
            f" not {zero_points[zero_points != 0][0]}: tflm would ignore it; quantise the weights"
            " symmetrically"
        )
    if weights.quantization.axis not in (None, axis):
        operator.refuse(
            f"scales of weights {quoted(weights.name)} must lie along axis {axis},"
            f" not {weights.quantization.axis}"
        )


def check_bias(operator: Operator, channels: int, index: int = 2) -> str:
    """The name of the bias, "" where there is none."""
    if len(operator.inputs) <= index or operator.inputs[index] is None:
        return ""
    dtype = "float32" if operator.output.dtype == "float32" else "int32"
    bias, data = operator.constant(index, (dtype,))
    if data.size != channels:
        operator.reject(
            f"bias {quoted(bias.name)} must have {channels} numbers, not shape {data.shape}"
        )
    return operator.reshaped(bias, (channels,)).name


def _check_bias_scale(operator: Operator, weights: Tensor) -> None:
    """Rejects what the reference does: a bias in another unit than the sum that it is added to."""
    bias = operator.inputs[2] if len(operator.inputs) > 2 else None
    quantization = weights.quantization
    # of several scales the reference asks nothing
    if bias is None or bias.quantization is None or quantization is None or quantization.axis == 0:
        return
    wanted = single(operator.activation(0))[0] * float(quantization.scale[0])
    scale = float(bias.quantization.scale[0])
    if abs(scale - wanted) > _BIAS_TOLERANCE * single(operator.output)[0]:
        operator.reject(
            f"bias {quoted(bias.name)} must have scale {wanted:g}, input's times weights', not"
            f" {scale:g}: tflm refuses it too"
        )


def _layer(operator: Operator, axis: int) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Input, weights, and the names of all inputs of a convolution."""
    operator.require_operands(2, 3)
    x = operator.activation(0)
    weights, _ = operator.constant(1, ("int8",))
    for tensor in (x, weights, operator.require_output()):
        operator.require_rank(tensor, 4)
    check_weights(operator, weights, axis)
    return x, weights, (x.name, weights.name, check_bias(operator, weights.shape[axis]))


def _convolution(
    operator: Operator, x: Tensor, kernel: tuple[int, int], channels: int
) -> dict[str, Any]:
    dilation = _pair(operator, "dilation", "DilationHFactor", "DilationWFactor")
    extents = tuple((size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True))
    attributes = _slide(operator, x, extents, channels)
    return attributes | {"dilation": dilation}


def _pool(operator: Operator, name: str) -> Normalised:
    operator.require_operands(1, 1)
    x = operator.activation(0)
    for tensor in (x, operator.require_output()):
        operator.require_rank(tensor, 4)
    operator.require_same_quantization(x)
    window = _pair(operator, "window", "FilterHeight", "FilterWidth")
    attributes = _slide(operator, x, window, x.shape[3])
    return name, (x.name,), attributes | {"window": window}


def _pair(operator: Operator, attribute: str, *fields: str) -> tuple[int, int]:
    y, x = (operator.options[field] for field in fields)
    if not (1 <= y <= MAXIMUM_STEP and 1 <= x <= MAXIMUM_STEP):
        operator.refuse(f"{attribute} must be within 1..{MAXIMUM_STEP}, not {y} x {x}")
    return y, x


def _slide(
    operator: Operator, x: Tensor, extents: tuple[int, ...], channels: int
) -> dict[str, Any]:
    """Stride, padding and activation of a window that covers ``extents`` rows and columns."""
    stride = _pair(operator, "stride", "StrideH", "StrideW")
    sizes, padding = _places(operator, x.shape[1:3], stride, extents)
    operator.require_shape((x.shape[0], *sizes, channels))
    padded = (x.shape[1] + sum(padding[:2]), x.shape[2] + sum(padding[2:]), x.shape[3])
    if math.prod(padded) > MAXIMUM_ACTIVATION:
        operator.refuse(f"the padded input must have at most {MAXIMUM_ACTIVATION} elements")
    return {
        "stride": stride,
        "padding": tuple(padding),
        "activation": operator.fused_activation(),
    }


def _places(
    operator: Operator, shape: tuple[int, ...], stride: tuple[int, int], extents: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    """Windows in y and x over a picture, and (top, bottom, left, right) padding around it."""
    scheme = operator.options["Padding"]
    if scheme not in (_SAME, _VALID):
        operator.reject(f"padding must be 0 (SAME) or 1 (VALID), not {scheme}")
    sizes, padding = [], []
    for size, step, extent in zip(shape, stride, extents, strict=True):
        if scheme == _VALID and extent > size:
            operator.reject(f"a window of {extent} must fit into an input of {size} (VALID)")
        steps = size if scheme == _SAME else size - extent + 1
        sizes.append(-(-steps // step))
        total = max((sizes[-1] - 1) * step + extent - size, 0)
        # the odd row or column goes to the end
        padding += [total // 2, total - total // 2] if scheme == _SAME else [0, 0]
    return sizes, padding

"""Conv, and the integer operators that are one: QLinearConv, ConvInteger."""

import dataclasses

import numpy as np

from .dynamic import integer_operand
from .layers import Layer, bias_values, coded_weights, quantised, real_layer
from .operator import Operator
from .quantization import dequantize, quantize
from .values import Coded, Codes, Constant, Pending, Value, shape_of
from .windows import windows


def convolution(
    operator: Operator, x: Value, weights: Value, bias: Value | None, exact: np.ndarray | None
) -> Pending:
    """A convolution of real numbers.

    Parameters
    ----------
    operator : Operator
        Whose attributes count.
    x, weights, bias : Value
    exact : array of int64 or None
        The bias in units of the sums instead.
    """
    if not isinstance(weights, Constant | Coded):
        operator.refuse("the weights must be a constant, and are computed")
    shape, kernel = shape_of(x), shape_of(weights)
    if len(kernel) not in (3, 4) or len(shape) != len(kernel):
        operator.refuse(
            f"input and weights must both have 3 or 4 dimensions, not {shape}, {kernel}"
        )
    filters, channels, *sizes = kernel
    groups = operator.integer("group", 1)
    if groups < 1 or groups * channels != shape[1] or filters % groups:
        operator.reject(
            f"{filters} filters of {channels} channels in {groups} groups must divide evenly among"
            f" {shape[1]} input channels"
        )
    slide = windows(operator, shape, tuple(sizes))
    output = (shape[0], filters, *slide.sizes)
    attributes = {**slide.attributes(), "dilation": slide.dilation}
    depthwise = channels == 1 and groups > 1
    kind = "depthwise_conv2d" if depthwise else "conv2d"
    attributes |= {"multiplier": filters // groups} if depthwise else {"groups": groups}
    activation = quantised(operator, x)
    coded = coded_weights(weights, 0) if isinstance(weights, Coded) else None
    numbers = bias_values(operator, bias, filters)
    if activation is None or coded is None:
        source = operator.builder.picture(operator.builder.real(x))
        laid = weights.array.reshape(filters, channels, *slide.kernel).transpose(0, 2, 3, 1)
        given = {**slide.attributes(), "dilation": slide.dilation, "groups": groups}
        return real_layer(operator, "conv2d", source, (laid, numbers), given, output)
    codes, scale, zero_point = coded
    laid = codes.reshape(filters, channels, *slide.kernel).transpose(0, 2, 3, 1)
    layer = Layer(
        operator,
        kind,
        operator.builder.picture(activation),
        laid,
        scale,
        zero_point,
        numbers,
        attributes,
        output,
        exact,
    )
    return layer.pending()


def conv(operator: Operator) -> Value:
    """Conv."""
    operator.require_inputs(2, 3)
    bias = operator.value(2) if operator.has(2) else None
    return convolution(operator, operator.value(0), operator.value(1), bias, None)


def qlinear_conv(operator: Operator) -> Value:
    """QLinearConv."""
    operator.require_inputs(8, 9)
    x = operand(operator, 0)
    weights = operand(operator, 3, axis=0)
    exact = None
    if operator.has(8):
        exact = operator.constant(8).reshape(-1).astype(np.int64)
        filters = shape_of(weights)[:1]
        if exact.shape != filters:
            operator.reject(f"the bias must be {filters} numbers, not {exact.shape}")
    pending = convolution(operator, x, weights, None, exact)
    return result(operator, pending, 6)


def conv_integer(operator: Operator) -> Value:
    """ConvInteger: the sums themselves."""
    operator.require_inputs(2, 4)
    x, weights = integer_operand(operator, 0, 2), integer_operand(operator, 1, 3, axis=0)
    return as_integers(convolution(operator, x, weights, None, None))


def as_integers(pending: Pending) -> Pending:
    """A layer of scale 1, as the int32 sums that it is."""
    return dataclasses.replace(pending, dtype="int32", made={})


def operand(operator: Operator, index: int, axis: int = 1) -> Value:
    """Three inputs, codes, scale and zero point, as real numbers."""
    scales = operator.scales(index + 1)
    value = operator.value(index)
    default = value.dtype if isinstance(value, Codes) else "uint8"
    if isinstance(value, Constant):
        default = value.array.dtype.name
    zero_points = operator.zero_points(index + 2, len(scales), default)
    if len(zero_points) == 1 and len(scales) > 1:
        zero_points = np.broadcast_to(zero_points, scales.shape)
    return dequantize(operator, value, scales, zero_points, axis)


def result(operator: Operator, value: Value, index: int) -> Value:
    """Real numbers as codes of the scale and zero point that two inputs give."""
    scales = operator.scales(index)
    zero_points = operator.zero_points(index + 1, len(scales))
    return quantize(operator, value, scales, zero_points, 1, operator.output)

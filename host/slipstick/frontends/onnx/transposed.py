"""ConvTranspose: each pixel times the kernel, laid a stride apart."""

import math
from dataclasses import dataclass

import numpy as np

from ..files import MAXIMUM_ACTIVATION
from ..tflite.windows import MAXIMUM_STEP
from .layers import Layer, bias_values, coded_weights, quantised, real_layer
from .operator import Operator
from .values import Coded, Constant, Shape, Value, shape_of


@dataclass(frozen=True)
class _Geometry:
    """Two dimensions each, but for ``sizes``, which are as many as the file has."""

    stride: tuple[int, int]
    dilation: tuple[int, int]
    cut: tuple[int, int]
    sizes: Shape


def _numbers(operator: Operator, name: str, rank: int, default: int, least: int) -> Shape:
    values = operator.integers(name, (default,) * rank)
    if len(values) != rank or not all(least <= value <= MAXIMUM_STEP for value in values):
        operator.refuse(f"{name} must be {rank} numbers of {least}..{MAXIMUM_STEP}, not {values}")
    return values


def _geometry(operator: Operator, shape: Shape, kernel: Shape, weights: int) -> _Geometry:
    """Finds where the result lies within the whole that the kernels, ``weights`` of them, cover."""
    rank = len(kernel)
    if operator.integers("kernel_shape", kernel) != kernel:
        operator.reject(f"kernel_shape must be that of the weights, {kernel}")
    stride = _numbers(operator, "strides", rank, 1, 1)
    dilation = _numbers(operator, "dilations", rank, 1, 1)
    more = _numbers(operator, "output_padding", rank, 0, 0)
    automatic = operator.text("auto_pad", "NOTSET")
    operator.require("auto_pad", automatic, ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    whole = [
        (size - 1) * step + (taps - 1) * apart + 1 + added
        for size, step, taps, apart, added in zip(
            shape[2:], stride, kernel, dilation, more, strict=True
        )
    ]
    wanted = operator.integers("output_shape", ())
    if not wanted and automatic.startswith("SAME"):
        wanted = tuple(size * step for size, step in zip(shape[2:], stride, strict=True))
    if wanted:
        if len(wanted) != rank:
            operator.reject(f"output_shape must be {rank} numbers, not {wanted}")
        totals = [max(0, size - own) for size, own in zip(whole, wanted, strict=True)]
        upper = automatic == "SAME_UPPER"
        cut = tuple(total // 2 if upper else total - total // 2 for total in totals)
    else:
        pads = _numbers(operator, "pads", 2 * rank, 0, 0)
        if automatic == "VALID":
            pads = (0,) * (2 * rank)
        cut = pads[:rank]
        ends = zip(whole, cut, pads[rank:], strict=True)
        wanted = tuple(size - before - behind for size, before, behind in ends)
    if min(wanted) < 1 or math.prod(wanted) * kernel[-1] > MAXIMUM_ACTIVATION:
        operator.reject(f"the output's sizes must be within 1..{MAXIMUM_ACTIVATION}, not {wanted}")
    sides = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilation, strict=True)]
    if math.prod(sides) * weights > MAXIMUM_ACTIVATION:
        operator.refuse(f"a kernel with its gaps must be {MAXIMUM_ACTIVATION} at most, not {sides}")
    return _Geometry(_two(stride, 1), _two(dilation, 1), _two(cut, 0), wanted)


def _two(values: Shape, missing: int) -> tuple[int, int]:
    return (values[0], values[1]) if len(values) == 2 else (missing, values[0])


def _dense(
    weights: np.ndarray, groups: int, dilation: tuple[int, int], zero: np.ndarray
) -> np.ndarray:
    """Filters x kernel y x kernel x x channels, without groups and dilation.

    Parameters
    ----------
    weights : array, filters of a group x channels x kernel y x kernel x
    zero : array, as many as the filters of a group
        What counts as 0 in each.
    """
    filters, channels, height, width = weights.shape
    inside = channels // groups
    sides = (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1
    made = np.empty((groups, filters, *sides, channels), weights.dtype)
    made[:] = zero.reshape(-1, 1, 1, 1)
    laid = weights.transpose(0, 2, 3, 1)
    for group in range(groups):
        own = slice(group * inside, (group + 1) * inside)
        made[group, :, :: dilation[0], :: dilation[1], own] = laid[..., own]
    return made.reshape(groups * filters, *sides, channels)


def conv_transpose(operator: Operator) -> Value:
    """ConvTranspose; groups and dilations become zeros in the kernel."""
    operator.require_inputs(2, 3)
    x, weights = operator.value(0), operator.value(1)
    assert isinstance(weights, Constant | Coded)
    shape, kernel = shape_of(x), shape_of(weights)
    if len(kernel) not in (3, 4) or len(shape) != len(kernel):
        operator.refuse(
            f"input and weights must both have 3 or 4 dimensions, not {shape}, {kernel}"
        )
    channels, filters, *sizes = kernel
    groups = operator.integer("group", 1)
    if channels != shape[1] or groups < 1 or channels % groups:
        operator.reject(
            f"weights of {channels} channels must be {groups} groups of the {shape[1]} of the input"
        )
    place = _geometry(operator, shape, tuple(sizes), filters * channels)
    outputs = groups * filters
    numbers = bias_values(operator, operator.value(2) if operator.has(2) else None, outputs)
    output = (shape[0], outputs, *place.sizes)
    attributes = {"stride": place.stride, "padding": place.cut, "activation": "none"}
    flat = (filters, channels, *_two(tuple(sizes), 1))
    activation = quantised(operator, x)
    coded = coded_weights(weights, 1) if isinstance(weights, Coded) else None
    if activation is None or coded is None or operator.builder.arithmetic is not None:
        source = operator.builder.picture(operator.builder.real(x))
        turned = weights.array.astype(np.float32).swapaxes(0, 1).reshape(flat)
        laid = _dense(turned, groups, place.dilation, np.zeros(filters, np.float32))
        return real_layer(operator, "transpose_conv2d", source, (laid, numbers), attributes, output)
    codes, scale, zero_point = coded
    layer = Layer(
        operator,
        "transpose_conv2d",
        operator.builder.picture(activation),
        _dense(codes.reshape(flat), groups, place.dilation, zero_point),
        np.tile(scale, groups),
        np.tile(zero_point, groups),
        numbers,
        attributes,
        output,
    )
    return layer.pending()

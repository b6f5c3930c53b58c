"""Layers of a logarithmic array as they are defined: exact sums of its products, then logarithms.

They follow :class:`slipstick_rtl.numbers.lns.array_arithmetic.ArrayArithmetic` number by number,
with nothing of the hardware's order; the golden model and the gateware are held to them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ...graph import Quantization, Tensor
from ..onnx.scaling import code_range
from ..tflite.matrix import pad_image, tap
from ..tflite.scaling import scalar
from .codes import magnitudes, meanings


def layer_scale(source: Tensor, weights: Tensor, arithmetic: ArrayArithmetic) -> np.ndarray:
    """Returns the real number that 1 in the sums means, by output channel or for all; float64."""
    if weights.quantization is None:
        raise ValueError(f"weights {weights.name} must be quantised")
    return scalar(source.quantization)[0] * weights.quantization.scale * arithmetic.unit


def offsets(scale: np.ndarray, output: Tensor, arithmetic: ArrayArithmetic) -> np.ndarray:
    """The requantiser's offsets, int64, of sums that are worth ``scale``."""
    ratios = np.asarray(scale, np.float64).reshape(-1) / scalar(output.quantization)[0]
    return np.array([arithmetic.offset(float(ratio)) for ratio in ratios])


def requantized(
    sums: np.ndarray,
    bias: np.ndarray | int,
    offset: np.ndarray,
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """Sums as codes of the output, int8, clamped as the node says."""
    codes = arithmetic.requantize(sums, bias, offset)
    return np.clip(codes, *code_range(attributes)).astype(np.int8)


def finish_layer(
    sums: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """Sums of products, plus bias, as the output has them: codes, or float32."""
    source, weights, output = tensors
    added = 0 if bias is None else bias
    scale = layer_scale(source, weights, arithmetic)
    if output.quantization is not None:
        offset = offsets(scale, output, arithmetic)
        return requantized(sums, added, offset, attributes, arithmetic)
    return ((sums + added).astype(np.int32) * scale).astype(np.float32)


def sum_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    output: Tensor,
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """Sums of products of a convolution, modulo 2^32; x NHWC, weights OHWI, both codes."""
    groups, (filters, *kernel, channels) = attributes["groups"], weights.shape
    total = np.zeros((len(x), *output.shape[1:]), np.int32)
    share = filters // groups
    for (y, column), window in _windows(x, kernel, output, attributes):
        for group in range(groups):
            own = slice(group * share, (group + 1) * share)
            inputs = window[..., group * channels : (group + 1) * channels]
            total[..., own] += _products(inputs, weights[own, y, column], arithmetic)
    return total


def sum_depthwise_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    output: Tensor,
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """As ``sum_conv2d``, each channel for itself; weights 1HWO."""
    kernel = weights.view(np.uint8)
    total = np.zeros((len(x), *output.shape[1:]), np.int32)
    for (y, column), window in _windows(x, weights.shape[1:3], output, attributes):
        pixels = np.repeat(window, attributes["multiplier"], axis=3)
        total += arithmetic.products[pixels, kernel[0, y, column]]
    return total


def _windows(
    x: np.ndarray, kernel: Sequence[int], output: Tensor, attributes: Mapping[str, Any]
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Each tap of a kernel, and the codes that it meets as unsigned bytes; padding is code 0."""
    padding, stride, dilation = (attributes[key] for key in ("padding", "stride", "dilation"))
    padded = pad_image(x, padding, 0).view(np.uint8)
    for y, column in np.ndindex(*kernel):
        origin = y * dilation[0], column * dilation[1]
        yield (y, column), tap(padded, origin, stride, output.shape[1:3])


def sum_fully_connected(
    x: np.ndarray, weights: np.ndarray, output: Tensor, arithmetic: ArrayArithmetic
) -> np.ndarray:
    """Rows of I inputs times O x I weights, modulo 2^32, of the output's shape."""
    rows = x.view(np.uint8).reshape(-1, weights.shape[1])
    return _products(rows, weights, arithmetic).reshape(len(x), *output.shape[1:])


def _products(x: np.ndarray, weights: np.ndarray, arithmetic: ArrayArithmetic) -> np.ndarray:
    """Sums over the last axis of products of (..., I) codes and (O, I) weights; int32 (..., O)."""
    total = np.zeros((*x.shape[:-1], len(weights)), np.int32)
    found, lanes = np.empty_like(total), np.moveaxis(x, -1, 0).astype(np.intp)
    for lane in np.flatnonzero(weights.any(axis=0)):
        # a row holds the products of one code with all outputs' weights
        rows = arithmetic.products[:, weights[:, lane].view(np.uint8)]
        total += np.take(rows, lanes[lane], axis=0, out=found, mode="clip")
    return total


def sum_tables(
    quantizations: tuple[Quantization, ...], arithmetic: ArrayArithmetic, *, negate: bool = False
) -> tuple[np.ndarray, int]:
    """ADD or SUB of codes as requantize(tables[0][a + 128] + tables[1][b + 128], 0, offset).

    Parameters
    ----------
    quantizations : (a, b, output)
    arithmetic : ArrayArithmetic
    negate : bool
        It is a - b.

    Returns
    -------
    (tables, offset)
        int32 (2, 256), and the requantiser's offset.
    """
    a, b, scale = (scalar(item)[0] for item in quantizations)
    real = np.stack([meanings(arithmetic) * a, meanings(arithmetic) * (-b if negate else b)])
    unit = _unit(float(np.abs(real).max(axis=1).sum()))
    return np.rint(real / unit).astype(np.int32), arithmetic.offset(unit / scale)


def mean_table(taps: int, arithmetic: ArrayArithmetic) -> tuple[np.ndarray, float]:
    """Tabulates terms of codes in sums of up to ``taps`` of them: int32 (256,), and its unit."""
    unit = _unit(float(magnitudes(arithmetic)[-1]) * taps)
    return np.rint(meanings(arithmetic) / unit).astype(np.int32), unit


def mean_offset(
    unit: float, tensors: tuple[Tensor, Tensor], count: int, arithmetic: ArrayArithmetic
) -> int:
    """The requantiser's offset for sums of a table's entries over ``count``."""
    source, output = (scalar(tensor.quantization)[0] for tensor in tensors)
    return arithmetic.offset(unit * source / output / count)


def _unit(largest: float) -> float:
    """A power of two of which the largest sum has below 2^30, so that rounding leads nowhere."""
    return 2.0 ** (math.frexp(largest)[1] - 30)


def add(
    a: np.ndarray,
    b: np.ndarray,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """ADD or, with ``negate``, SUB of codes, which broadcast."""
    present = tuple(item.quantization for item in tensors if item.quantization is not None)
    negate = bool(attributes.get("negate"))
    (first, second), offset = sum_tables(present, arithmetic, negate=negate)
    sums = first[a.astype(np.int64) + 128] + second[b.astype(np.int64) + 128]
    return requantized(sums, 0, np.array(offset), attributes, arithmetic)


def average_pool2d(
    x: np.ndarray,
    source: Tensor,
    output: Tensor,
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """The mean of each window, over what ``counted`` (top, bottom, left, right) lets count."""
    sizes, stride = output.shape[1:3], attributes["stride"]
    height, width = attributes["window"]
    down, across = attributes.get("dilation", (1, 1))
    inside = pad_image(np.ones((1, *x.shape[1:3], 1), np.int64), attributes["counted"], 1)
    beyond = np.subtract(attributes["padding"], attributes["counted"])
    top, bottom, left, right = (int(size) for size in beyond)
    counted = pad_image(inside, (top, bottom, left, right), 0)
    origins = [(y * down, column * across) for y, column in np.ndindex(height, width)]
    count = np.sum([tap(counted, origin, stride, sizes) for origin in origins], axis=0)
    padded = pad_image(x, attributes["padding"], 0)
    table, unit = mean_table(len(origins), arithmetic)
    sums = np.zeros((len(x), *output.shape[1:]), np.int64)
    for origin in origins:
        sums += table[tap(padded, origin, stride, sizes).astype(np.int64) + 128]
    offset = np.zeros_like(count)
    for number in np.unique(count):
        offset[count == number] = mean_offset(unit, (source, output), int(number), arithmetic)
    return requantized(sums, 0, offset, attributes, arithmetic)


def mean(
    x: np.ndarray,
    source: Tensor,
    output: Tensor,
    attributes: Mapping[str, Any],
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """The mean over some axes."""
    axes = tuple(attributes["axes"])
    count = math.prod(source.shape[axis] for axis in axes)
    table, unit = mean_table(count, arithmetic)
    sums = table[x.astype(np.int64) + 128].sum(axis=axes, dtype=np.int64)
    offset = np.array(mean_offset(unit, (source, output), count, arithmetic))
    codes = requantized(sums, 0, offset, attributes, arithmetic)
    return codes.reshape(len(x), *output.shape[1:])

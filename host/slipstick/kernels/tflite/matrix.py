"""Convolutions and fully connected layers on the host, exact to the last bit."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from slipstick_rtl.numbers.rounding import clamp

from ...graph import Tensor
from .scaling import activation_range, layer_multipliers, multiply_by_quantized_multiplier, scalar

Bounds = tuple[int, int, int, int]


def conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """A convolution, with groups if the weights have fewer channels than the input.

    Parameters
    ----------
    x : array of int8, N x H x W x I
    weights : array of int8, O x kernel y x kernel x x I / groups
    bias : array of int32, O, or None
    tensors : (input, weights, output)
        Whose quantisation counts.
    attributes : mapping
        As :class:`slipstick.graph.Node` has them.

    Returns
    -------
    array of int8, N x H' x W' x O
    """
    accumulator = sum_conv2d(x, weights, tensors, attributes)
    return _finish(accumulator, bias, tensors, attributes["activation"])


def sum_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """The sums of products of ``conv2d``, int64."""
    source, described, output = tensors
    groups = attributes["groups"]
    channels, filters = weights.shape[3], weights.shape[0] // groups
    accumulator = np.zeros((len(x), *output.shape[1:]), dtype=np.float64)
    # sums of products of 9 and 8 bits are exact in float64 for any reduction that fits memory
    kernel = centred_weights(weights, described, 0).astype(np.float64)
    zero_point = scalar(source.quantization)[1]
    for y, column, window in _windows(x, zero_point, weights.shape[1:3], output, attributes):
        pixels = window.astype(np.float64)
        for group in range(groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters, (group + 1) * filters)
            accumulator[..., outputs] += pixels[..., inputs] @ kernel[outputs, y, column].T
    return accumulator.astype(np.int64)


def depthwise_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """A convolution of each channel for itself.

    Parameters and result as for ``conv2d``, but weights are 1 x kernel y x kernel x x O, and output
    channel o reads input channel o // multiplier.
    """
    accumulator = sum_depthwise_conv2d(x, weights, tensors, attributes)
    return _finish(accumulator, bias, tensors, attributes["activation"])


def sum_depthwise_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """The sums of products of ``depthwise_conv2d``, int64."""
    source, described, output = tensors
    accumulator = np.zeros((len(x), *output.shape[1:]), dtype=np.int64)
    kernel = centred_weights(weights, described, 3)
    zero_point = scalar(source.quantization)[1]
    for y, column, window in _windows(x, zero_point, weights.shape[1:3], output, attributes):
        pixels = np.repeat(window, attributes["multiplier"], axis=3)
        accumulator += pixels * kernel[0, y, column]
    return accumulator


def fully_connected(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """Rows of I inputs times O x I weights; the result has the output tensor's shape.

    Parameters are as for ``conv2d``.
    """
    accumulator = sum_fully_connected(x, weights, tensors)
    return _finish(accumulator, bias, tensors, attributes["activation"])


def sum_fully_connected(
    x: np.ndarray, weights: np.ndarray, tensors: tuple[Tensor, Tensor, Tensor]
) -> np.ndarray:
    """The sums of products of ``fully_connected``, int64."""
    source, described, output = tensors
    rows = x.reshape(-1, weights.shape[1]).astype(np.float64)
    rows -= scalar(source.quantization)[1]
    kernel = centred_weights(weights, described, 0).astype(np.float64)
    accumulator = (rows @ kernel.T).astype(np.int64)
    return accumulator.reshape(len(x), *output.shape[1:])


def transpose_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """Each pixel times the kernel, laid ``stride`` apart and summed up.

    Parameters and result are as for ``conv2d``, without groups; ``padding`` are the rows and
    columns of the whole that lie before the result.
    """
    accumulator = sum_transpose_conv2d(x, weights, tensors, attributes)
    return _finish(accumulator, bias, tensors, attributes["activation"])


def sum_transpose_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    tensors: tuple[Tensor, Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """The sums of products of ``transpose_conv2d``, int64."""
    source, described, output = tensors
    centred = x.astype(np.float64) - scalar(source.quantization)[1]
    kernel = centred_weights(weights, described, 0).astype(np.float64)
    (step_y, step_x), (top, left) = attributes["stride"], attributes["padding"]
    spans = zip(
        x.shape[1:3],
        kernel.shape[1:3],
        output.shape[1:3],
        (top, left),
        (step_y, step_x),
        strict=True,
    )
    sides = [max((size - 1) * step + taps, out + cut) for size, taps, out, cut, step in spans]
    whole = np.zeros((len(x), *sides, output.shape[3]), dtype=np.float64)
    for y in range(kernel.shape[1]):
        for column in range(kernel.shape[2]):
            places = tap(whole, (y, column), (step_y, step_x), x.shape[1:3])
            places += centred @ kernel[:, y, column].T
    shown = whole[:, top : top + output.shape[1], left : left + output.shape[2]]
    return shown.astype(np.int64)


def centred_weights(weights: np.ndarray, tensor: Tensor, axis: int) -> np.ndarray:
    """Weights less their zero points, one or one an output channel (``axis``); int16."""
    quantization = tensor.quantization
    if quantization is None or not quantization.zero_point.any():
        return weights.astype(np.int16)
    shape = [1] * weights.ndim
    shape[axis] = -1
    return weights.astype(np.int16) - quantization.zero_point.astype(np.int16).reshape(shape)


def _windows(
    x: np.ndarray,
    zero_point: int,
    kernel: tuple[int, ...],
    output: Tensor,
    attributes: Mapping[str, Any],
) -> Iterator[tuple[int, int, np.ndarray]]:
    """(ky, kx, the input less its zero point that this tap sees for each output pixel)."""
    padding, stride, dilation = (attributes[key] for key in ("padding", "stride", "dilation"))
    centred = pad_image(x.astype(np.int32) - zero_point, padding, 0)
    for y in range(kernel[0]):
        for column in range(kernel[1]):
            origin = y * dilation[0], column * dilation[1]
            yield y, column, tap(centred, origin, stride, output.shape[1:3])


def pad_image(x: np.ndarray, padding: Bounds, value: int) -> np.ndarray:
    """N x H x W x C with (top, bottom, left, right) rows and columns of a value around it."""
    top, bottom, left, right = padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def tap(
    x: np.ndarray, origin: tuple[int, int], stride: tuple[int, int], size: tuple[int, ...]
) -> np.ndarray:
    """Every stride-th pixel from an origin on, ``size`` of them in y and x."""
    (y, column), (step_y, step_x) = origin, stride
    return x[
        :,
        y : y + step_y * (size[0] - 1) + 1 : step_y,
        column : column + step_x * (size[1] - 1) + 1 : step_x,
    ]


def _finish(
    accumulator: np.ndarray,
    bias: np.ndarray | None,
    tensors: tuple[Tensor, Tensor, Tensor],
    activation: str,
) -> np.ndarray:
    """Bias, requantisation and activation."""
    if bias is not None:
        accumulator = accumulator + bias
    scale, zero_point = scalar(tensors[2].quantization)
    value = multiply_by_quantized_multiplier(accumulator, *layer_multipliers(*tensors))
    return clamp(value, zero_point, *activation_range(activation, scale, zero_point))

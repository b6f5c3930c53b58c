"""Convolutions, matrix products and pooling by ONNX's rule, or in float32 where a side is real."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph import Tensor
from ..tflite import matrix
from ..tflite.matrix import pad_image, tap
from ..tflite.scaling import scalar
from .real import from_real, to_real
from .scaling import average_factor, code_range, factor_parts, layer_factors, round_float, to_codes

Tensors = tuple[Tensor, Tensor, Tensor]


def finish_layer(
    sums: np.ndarray, bias: np.ndarray | None, tensors: Tensors, attributes: Mapping[str, Any]
) -> np.ndarray:
    """Sums of products, plus bias, as the output has them: codes, float32, or int32 themselves."""
    source, weights, output = tensors
    if bias is not None:
        sums = sums + bias
    if output.quantization is not None:
        return to_codes(sums, layer_factors(*tensors), output, attributes)
    wrapped = sums.astype(np.int32)
    if output.dtype == "int32":
        return wrapped
    assert weights.quantization is not None
    scales = np.float32(scalar(source.quantization)[0]) * weights.quantization.scale.astype(
        np.float32
    )
    return wrapped.astype(np.float32) * scales


def real_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    output: Tensor,
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """A convolution in float64, x NHWC, weights OHWI: sums of whole numbers are exact."""
    x, weights = x.astype(np.float64), weights.astype(np.float64)
    groups, channels, filters = attributes["groups"], weights.shape[3], len(weights)
    padding, stride, dilation = (attributes[key] for key in ("padding", "stride", "dilation"))
    padded = pad_image(x, padding, 0)
    total = np.zeros((len(x), *output.shape[1:]), x.dtype)
    for y, column in np.ndindex(weights.shape[1:3]):
        origin = y * dilation[0], column * dilation[1]
        window = tap(padded, origin, stride, output.shape[1:3])
        for group in range(groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters // groups, (group + 1) * filters // groups)
            total[..., outputs] += window[..., inputs] @ weights[outputs, y, column].T
    return total if bias is None else total + bias


def real_transpose_conv2d(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    output: Tensor,
    attributes: Mapping[str, Any],
) -> np.ndarray:
    """A transposed convolution in float64; x NHWC, weights OHWI, without groups."""
    x, weights = x.astype(np.float64), weights.astype(np.float64)
    stride, (top, left) = attributes["stride"], attributes["padding"]
    spans = zip(
        x.shape[1:3], weights.shape[1:3], output.shape[1:3], (top, left), stride, strict=True
    )
    sides = [max((size - 1) * step + taps, out + cut) for size, taps, out, cut, step in spans]
    whole = np.zeros((len(x), *sides, len(weights)))
    for y, column in np.ndindex(weights.shape[1:3]):
        places = tap(whole, (y, column), stride, x.shape[1:3])
        places += x @ weights[:, y, column].T
    total = whole[:, top : top + output.shape[1], left : left + output.shape[2]]
    return total if bias is None else total + bias


def matmul(
    a: np.ndarray, b: np.ndarray, tensors: Tensors, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The product of two activations, of matrices in the last two axes."""
    first, second, output = tensors
    if first.quantization is None or second.quantization is None:
        reals = [
            to_real(value, tensor).astype(np.float64) for value, tensor in ((a, first), (b, second))
        ]
        return from_real(np.matmul(*reals), output, attributes)
    centred = [
        value.astype(np.float64) - scalar(tensor.quantization)[1]
        for value, tensor in ((a, first), (b, second))
    ]
    return finish_layer(np.matmul(*centred).astype(np.int64), None, tensors, attributes)


def average_pool2d(
    x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The mean of each window, over what ``counted`` (top, bottom, left, right) lets count."""
    sizes, stride = output.shape[1:3], attributes["stride"]
    counted = pad_image(np.ones((1, *x.shape[1:3], 1), np.int64), attributes["counted"], 1)
    # rows and columns that a window only covers as it was rounded up
    beyond = tuple(
        size - own for size, own in zip(attributes["padding"], attributes["counted"], strict=True)
    )
    counted = pad_image(counted, beyond, 0)
    centred = _centred(x, source)
    padded = pad_image(centred, attributes["padding"], 0)
    total = np.zeros((len(x), *output.shape[1:]), padded.dtype)
    count = np.zeros((1, *sizes, 1), np.int64)
    height, width = attributes["window"]
    down, across = attributes.get("dilation", (1, 1))
    for y, column in np.ndindex(height, width):
        origin = y * down, column * across
        total += tap(padded, origin, stride, sizes)
        count += tap(counted, origin, stride, sizes)
    return _mean(total, count, (source, output), attributes)


def max_pool2d(
    x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The largest of each window."""
    lowest = np.iinfo(x.dtype).min if x.dtype.kind == "i" else -np.inf
    top, bottom, left, right = attributes["padding"]
    edges = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x, edges, constant_values=lowest)
    value = np.full((len(x), *output.shape[1:]), lowest, x.dtype)
    down, across = attributes.get("dilation", (1, 1))
    for y, column in np.ndindex(attributes["window"]):
        origin = y * down, column * across
        np.maximum(value, tap(padded, origin, attributes["stride"], value.shape[1:3]), out=value)
    if source.quantization is None:
        return value
    return np.clip(value, *code_range(attributes, source.dtype)).astype(x.dtype)


def mean(
    x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The mean over some axes."""
    axes = tuple(attributes["axes"])
    count = np.array(int(np.prod([source.shape[axis] for axis in axes])))
    centred = _centred(x, source)
    places = np.moveaxis(centred, axes, range(len(axes))).reshape(-1, *_rest(centred, axes))
    # one by one and in their order: where they are float32, that decides the last bit
    total = np.zeros(places.shape[1:], places.dtype)
    for part in places:
        total += part
    total = total.reshape(len(x), *output.shape[1:])
    return _mean(total, count, (source, output), attributes)


def _centred(x: np.ndarray, source: Tensor) -> np.ndarray:
    """What is summed up: codes less their zero point, or the real numbers."""
    if source.quantization is None:
        return to_real(x, source)
    return x.astype(np.int64) - scalar(source.quantization)[1]


def _rest(x: np.ndarray, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(x.shape) if axis not in axes)


def _mean(
    total: np.ndarray,
    count: np.ndarray,
    tensors: tuple[Tensor, Tensor],
    attributes: Mapping[str, Any],
) -> np.ndarray:
    source, output = tensors
    if source.quantization is None:
        return from_real(total / count.astype(np.float32), output, attributes)
    if output.quantization is None:
        scale = np.float32(scalar(source.quantization)[0])
        return (total.astype(np.float32) * scale / count.astype(np.float32)).astype(np.float32)
    parts = {
        int(number): average_factor(source.quantization, output.quantization, int(number))
        for number in np.unique(count)
    }
    factors = np.vectorize(lambda number: parts[number], otypes=[np.float32])(count)
    mantissas, shifts = (part.reshape(count.shape) for part in factor_parts(factors))
    codes = round_float(total, mantissas, shifts) + scalar(output.quantization)[1]
    return np.clip(codes, *code_range(attributes, output.dtype)).astype(output.dtype)


SUMS = {
    "conv2d": matrix.sum_conv2d,
    "depthwise_conv2d": matrix.sum_depthwise_conv2d,
    "transpose_conv2d": matrix.sum_transpose_conv2d,
}
"""What each convolution sums, before it is rounded."""

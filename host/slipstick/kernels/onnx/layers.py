"""Convolutions and matrix products by ONNX's rule, or in float32 where a side is real."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph import Tensor
from ..tflite import matrix
from ..tflite.matrix import pad_image, tap
from ..tflite.scaling import scalar
from .real import from_real, to_real
from .scaling import layer_factors, to_codes

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


SUMS = {
    "conv2d": matrix.sum_conv2d,
    "depthwise_conv2d": matrix.sum_depthwise_conv2d,
    "transpose_conv2d": matrix.sum_transpose_conv2d,
}
"""Functions that compute the sums of each convolution, before they are rounded."""

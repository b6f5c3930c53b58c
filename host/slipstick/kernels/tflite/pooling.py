"""Pooling and MEAN with TensorFlow Lite's integer semantics."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import Pooling
from ...operators.pooling import AVERAGE_POOL2D, MAX_POOL2D
from ..table import TFLM, Operands
from .matrix import pad_image, tap
from .scaling import activation_range, multiply_by_quantized_multiplier, quantize_multiplier, scalar

Pool = Callable[[np.ndarray, Tensor, Mapping[str, Any]], np.ndarray]


def pooling_kernel(pooling: Pooling) -> Callable[[Pool], Pool]:
    """Makes a function of codes, the output and the attributes an operator's kernel."""

    def register(pool: Pool) -> Pool:
        def run_pool(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
            return pool(operands[0], graph.tensors[node.outputs[0]], node.attributes)

        TFLM[pooling.name] = run_pool
        return pool

    return register


@pooling_kernel(AVERAGE_POOL2D)
def average_pool2d(x: np.ndarray, output: Tensor, attributes: Mapping[str, Any]) -> np.ndarray:
    """The mean of each window, ties away from zero or up; padding does not count.

    Parameters
    ----------
    x : array of int8, N x H x W x C
    output : Tensor
        Its shape and quantisation; the input has the same quantisation.
    attributes : mapping
        As :class:`slipstick.graph.Node` has them.

    Returns
    -------
    array of int8, N x H' x W' x C
    """
    total = np.zeros((len(x), *output.shape[1:]), dtype=np.int64)
    count = np.zeros((1, *output.shape[1:3], 1), dtype=np.int64)
    padded = pad_image(x, attributes["padding"], 0)
    inside = pad_image(np.ones((1, *x.shape[1:3], 1), np.int8), attributes["padding"], 0)
    for origin in np.ndindex(attributes["window"]):
        total += tap(padded, origin, attributes["stride"], output.shape[1:3])
        count += tap(inside, origin, attributes["stride"], output.shape[1:3])
    if attributes.get("ties", "away") == "up":
        value = (total + count // 2) // count
    else:
        # integer division in C truncates
        value = np.sign(total) * ((np.abs(total) + count // 2) // count)
    low, high = activation_range(attributes["activation"], *scalar(output.quantization))
    return np.clip(value, low, high).astype(np.int8)


@pooling_kernel(MAX_POOL2D)
def max_pool2d(x: np.ndarray, output: Tensor, attributes: Mapping[str, Any]) -> np.ndarray:
    """The largest code of each window; parameters and result as for ``average_pool2d``."""
    value = np.full((len(x), *output.shape[1:]), -128, dtype=np.int8)
    padded = pad_image(x, attributes["padding"], -128)
    for origin in np.ndindex(attributes["window"]):
        np.maximum(value, tap(padded, origin, attributes["stride"], value.shape[1:3]), out=value)
    low, high = activation_range(attributes["activation"], *scalar(output.quantization))
    return np.clip(value, low, high)


def mean(
    x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The mean over some axes, rescaled to the output's quantisation.

    Parameters
    ----------
    x : array of int8
    source, output : Tensor
        Their shapes and quantisations.
    attributes : mapping
        As :class:`slipstick.graph.Node` has them.

    Returns
    -------
    array of int8
    """
    axes = tuple(attributes["axes"])
    count = int(np.prod([source.shape[axis] for axis in axes]))
    (scale, zero_point), (output_scale, output_zero_point) = (
        scalar(tensor.quantization) for tensor in (source, output)
    )
    multiplier, shift = mean_multiplier(scale / output_scale, count)
    total = x.sum(axis=axes, dtype=np.int64) - zero_point * count
    value = multiply_by_quantized_multiplier(total, multiplier, shift) + output_zero_point
    return np.clip(value, -128, 127).astype(np.int8).reshape(len(x), *output.shape[1:])


def reduce_sum(
    x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """The sum over some axes in the output's quantisation; parameters as for ``mean``."""
    axes = tuple(attributes["axes"])
    count = int(np.prod([source.shape[axis] for axis in axes]))
    (scale, zero_point), (output_scale, output_zero_point) = (
        scalar(tensor.quantization) for tensor in (source, output)
    )
    total = x.sum(axis=axes, dtype=np.int64) - zero_point * count
    factor = quantize_multiplier(scale / output_scale)
    value = multiply_by_quantized_multiplier(total, *factor) + output_zero_point
    return np.clip(value, -128, 127).astype(np.int8).reshape(len(x), *output.shape[1:])


def reduce_extreme(
    x: np.ndarray, output: Tensor, attributes: Mapping[str, Any], *, largest: bool
) -> np.ndarray:
    """The largest or smallest code over some axes; parameters as for ``mean``."""
    axes = tuple(attributes["axes"])
    value = x.max(axis=axes) if largest else x.min(axis=axes)
    return value.reshape(len(x), *output.shape[1:])


def arg_extreme(x: np.ndarray, output: Tensor, axis: int, *, largest: bool) -> np.ndarray:
    """The place of the largest or smallest code along an axis, the first of equal ones."""
    place = x.argmax(axis=axis) if largest else x.argmin(axis=axis)
    return place.astype(output.dtype).reshape(len(x), *output.shape[1:])


def mean_multiplier(real: float, count: int) -> tuple[int, int]:
    """real / count as (mantissa, shift); like the reference, it divides the mantissa."""
    multiplier, shift = quantize_multiplier(real)
    raised = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << raised) // count, shift - raised

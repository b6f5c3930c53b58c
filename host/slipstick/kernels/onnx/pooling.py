"""Pooling and means by ONNX's rule, or in float32 where a side is real."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import Pooling
from ...operators.pooling import AVERAGE_POOL2D, MAX_POOL2D
from ..table import ONNX, Operands
from ..tflite.matrix import pad_image, tap
from ..tflite.scaling import scalar
from .real import from_real, to_real
from .scaling import average_factor, code_range, factor_parts, round_float

Pool = Callable[[np.ndarray, Tensor, Tensor, Mapping[str, Any]], np.ndarray]


def pooling_kernel(pooling: Pooling) -> Callable[[Pool], Pool]:
    """Makes a function of codes or real numbers, input, output and attributes an operator's kernel,
    also for windows with gaps."""

    def register(pool: Pool) -> Pool:
        def run_pool(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
            source, output = (graph.tensors[name] for name in (node.inputs[0], node.outputs[0]))
            return pool(operands[0], source, output, node.attributes)

        ONNX[pooling.name] = run_pool
        if pooling.dilated:
            ONNX[pooling.dilated] = run_pool
        return pool

    return register


@pooling_kernel(AVERAGE_POOL2D)
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


@pooling_kernel(MAX_POOL2D)
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
    """Returns the numbers to sum up: codes less their zero point, or the real numbers."""
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

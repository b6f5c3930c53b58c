"""Scales whose quotients float32 and 32-bit codes can hold: others are refused by name.

onnxruntime makes an integer of 32 bits of each result before it clamps it. A product or mean that
can be 2^31 output scales or more overflows there, and has no code that all kernels agree on. Sums
come from tables of 32 bits, whose fraction tells which code is nearest: they must be smaller.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ...errors import UnsupportedError
from ...graph import Graph, Tensor
from ...kernels.onnx.scaling import layer_factors
from ...operators import Family, entry
from ..files import quoted

REACH = 255
"""The largest distance of a code from its zero point."""

LIMIT_BITS = 31
SUM_BITS = 20
"""Results must be below 2 to these."""


def check_factors(graph: Graph) -> None:
    """Refuses scales that no runtime computes with.

    Raises
    ------
    UnsupportedError
        With the node, its tensors and their scales.
    """
    for node in graph.nodes:
        reach = entry(_LARGEST, node.operator)
        if reach is None:
            continue
        inputs = [graph.tensors[name] for name in node.inputs[:2] if name]
        tensors = (*inputs, graph.tensors[node.outputs[0]])
        if any(tensor.quantization is None for tensor in tensors):
            continue
        with np.errstate(over="ignore"):
            largest = reach(tensors)
        bits = SUM_BITS if node.operator == "add" else LIMIT_BITS
        if not largest < 1 << bits:
            scales = ", ".join(f"{_scale(each):g} of {quoted(each.name)}" for each in tensors)
            raise UnsupportedError(
                f"{graph.name}: node {quoted(node.name)} ({node.operator}): scales {scales} make"
                f" results up to {largest:g} output scales, which must be below 2^{bits}"
            )


def _scale(tensor: Tensor) -> float:
    assert tensor.quantization is not None
    return float(tensor.quantization.scale.max())


def _of_sum(tensors: tuple[Tensor, ...]) -> float:
    *operands, output = tensors
    return REACH * sum(_scale(each) for each in operands) / _scale(output)


def _of_product(tensors: tuple[Tensor, ...]) -> float:
    *operands, output = tensors
    return float(np.prod([REACH * _scale(each) for each in operands])) / _scale(output)


def _of_mean(tensors: tuple[Tensor, ...]) -> float:
    return REACH * _scale(tensors[0]) / _scale(tensors[-1])


def _of_layer(tensors: tuple[Tensor, ...]) -> float:
    """Only a factor that is no number of float32 is in the way: sums saturate."""
    source, weights, output = tensors
    finite = np.isfinite(layer_factors(source, weights, output)).all()
    return 0.0 if finite else float("inf")


_LARGEST: Mapping[str | Family, Callable[[tuple[Tensor, ...]], float]] = {
    "add": _of_sum,
    "mul": _of_product,
    "mean": _of_mean,
    Family.POOLING: _of_mean,
    Family.LAYER: _of_layer,
    "matmul": _of_layer,
}

"""Networks with logarithmic weights and activations of int8, emulated: all else is float32."""

import dataclasses
from typing import Any

import numpy as np
from slipstick_rtl.experiments.mixed_arithmetic import MixedArithmetic
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

from ... import kernels
from ...graph import Graph, Node
from ...kernels.lns.codes import encode
from ...quantize.lns_scales import best_scales
from .emulation import LAYERS, Emulation

_STEPS = 255
"""Between the smallest and the largest code of an int8."""


def affine(real: np.ndarray, low: float, high: float) -> np.ndarray:
    """Real numbers, float32, rounded to an int8 whose codes reach from ``low`` to ``high``.

    Parameters
    ----------
    real : array
    low, high : float
        At most 0, and at least 0, not both.
    """
    scale = (high - low) / _STEPS
    zero = np.rint(low / scale)
    codes = np.clip(np.rint(real / scale), zero, zero + _STEPS)
    return (codes * scale).astype(np.float32)


class MixedEmulation(Emulation):
    """As its base, but only weights are logarithmic, with the scales that err least.

    Activations are rounded to int8 as their range in the calibration says. The means of each
    layer's channels are corrected by its bias on the calibration samples, layer after layer.
    """

    def __init__(self, *arguments: Any) -> None:
        self._networks: dict[Lns, Graph] = {}
        super().__init__(*arguments)
        self._samples = arguments[1]
        exact = self._values(self._graph, self._samples, None)
        self._ranges = {name: _range(exact[name]) for name in self._tops}
        layers = [node for node in self._graph.nodes if node.operator in LAYERS]
        self._means = {node.outputs[0]: _means(exact[node.outputs[0]]) for node in layers}

    def _round(self, name: str, value: np.ndarray, lns: Lns | None) -> np.ndarray:
        return (
            value if lns is None or name not in self._tops else affine(value, *self._ranges[name])
        )

    def _with_weights(self, lns: Lns) -> Graph:
        if lns not in self._networks:
            self._networks[lns] = self._corrected(self._rounded_weights(lns), lns)
        return self._networks[lns]

    def _rounded_weights(self, lns: Lns) -> Graph:
        """Codes as an array of logarithms has them, and what elements multiply by for each."""
        codes, elements = ArrayArithmetic(lns), MixedArithmetic(lns)
        tensors = dict(self._graph.tensors)
        for weights in self._weights():
            assert weights.data is not None
            rows = weights.data.reshape(len(weights.data), -1).astype(np.float64)
            scale = best_scales(rows, codes)[:, None].astype(np.float64)
            factors = elements.factor(encode(rows, scale, codes)) * scale
            data = factors.astype(np.float32).reshape(weights.shape)
            tensors[weights.name] = dataclasses.replace(weights, data=data)
        return self._graph.replace(tensors=tensors)

    def _corrected(self, graph: Graph, lns: Lns) -> Graph:
        """With biases that give each layer's channels the means of the float network."""
        name = graph.inputs[0]
        values = {name: self._round(name, self._samples.astype(np.float32), lns)}
        for node in graph.nodes:
            operands = [values[name] for name in node.inputs if name in values]
            if node.outputs[0] in self._means:
                (result,) = kernels.run(node, graph, operands)
                graph = _biased(graph, node, self._means[node.outputs[0]] - _means(result))
            results = kernels.run(node, graph, operands)
            for name, value in zip(node.outputs, results, strict=True):
                values[name] = self._round(name, value, lns)
        return graph


def _range(values: np.ndarray) -> tuple[float, float]:
    """Smallest and largest number, 0 among them."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    return (low, high) if low < high else (0.0, 1.0)


def _means(values: np.ndarray) -> np.ndarray:
    """Computes the mean of each channel, float64."""
    return values.reshape(-1, values.shape[-1]).mean(axis=0, dtype=np.float64)


def _biased(graph: Graph, node: Node, change: np.ndarray) -> Graph:
    """With this much more of a layer's bias; the same graph if the layer has none."""
    bias = graph.tensors[node.inputs[2]] if len(node.inputs) > 2 else None
    if bias is None or bias.data is None:
        return graph
    changed = dataclasses.replace(bias, data=(bias.data + change).astype(np.float32))
    return graph.replace(tensors={**graph.tensors, bias.name: changed})

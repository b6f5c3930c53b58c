"""Logarithmic formats wider than an array's, emulated: rounded operands, all else in float32."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns

from ... import kernels
from ...frontends.onnx import read_network
from ...graph import Graph, Node, Tensor
from ...quantize import FloatNetwork
from ...quantize.lns_plan import plan

LAYERS = ("conv2d", "depthwise_conv2d", "fully_connected")
"""Layers that have weights."""


def rounded(real: np.ndarray, top: np.ndarray | float, lns: Lns) -> np.ndarray:
    """Real numbers, float32, whose logarithms are rounded to a format's, ``top`` the largest one.

    Parameters
    ----------
    real : array
    top : float or array that broadcasts
        Positive.
    lns : Lns
    """
    steps, largest = 1 << lns.fraction_bits, lns.largest_code
    with np.errstate(divide="ignore"):
        below = np.rint(np.log2(np.abs(real.astype(np.float64)) / top) * steps)
    magnitude = np.where(below > -largest, np.exp2(np.minimum(below, 0) / steps) * top, 0)
    return (np.sign(real) * magnitude).astype(np.float32)


class Emulation:
    """A float network whose tensors and weights can be rounded to a format.

    Parameters
    ----------
    network : FloatNetwork
    samples : array, (samples, ...)
        Numbers as it takes them, of which the largest ones become the formats'.
    """

    def __init__(self, network: FloatNetwork, samples: np.ndarray) -> None:
        model = network.prepared()
        coded = set(plan(model.graph).coded)
        self._graph, sources = read_network(model.SerializeToString(), quantised=False)
        self._tops: dict[str, float] = {}
        names = {name for name, source in sources.items() if source.name in coded}
        for name, value in self._values(self._graph, samples, None).items():
            if name in names or name in self._graph.inputs:
                self._tops[name] = float(np.abs(value).max()) or 1.0

    def run(self, lns: Lns, x: np.ndarray) -> np.ndarray:
        """The network's output."""
        values = self._values(self._with_weights(lns), x, lns)
        return values[self._graph.outputs[0]]

    def _values(self, graph: Graph, x: np.ndarray, lns: Lns | None) -> dict[str, np.ndarray]:
        values = {graph.inputs[0]: self._round(graph.inputs[0], x.astype(np.float32), lns)}
        for node in graph.nodes:
            operands = [values[name] for name in node.inputs if name in values]
            results = self._apply(node, graph, operands, lns)
            for name, value in zip(node.outputs, results, strict=True):
                values[name] = self._round(name, value, lns)
        return values

    def _apply(
        self, node: Node, graph: Graph, operands: Sequence[np.ndarray], lns: Lns | None
    ) -> Sequence[np.ndarray]:
        """A layer's results before they are rounded; without a format, in the calibration."""
        return kernels.run(node, graph, operands)

    def _round(self, name: str, value: np.ndarray, lns: Lns | None) -> np.ndarray:
        return (
            value
            if lns is None or name not in self._tops
            else rounded(value, self._tops[name], lns)
        )

    def _weights(self) -> list[Tensor]:
        """Lists the weights of all layers, as far as they are constants."""
        layers = [node for node in self._graph.nodes if node.operator in LAYERS]
        found = (self._graph.tensors[node.inputs[1]] for node in layers)
        return [tensor for tensor in found if tensor.data is not None]

    def _with_weights(self, lns: Lns) -> Graph:
        """With the weights of a format, the largest of each output channel its largest number."""
        tensors = dict(self._graph.tensors)
        for weights in self._weights():
            assert weights.data is not None
            rows = weights.data.reshape(len(weights.data), -1)
            top = np.abs(rows).max(axis=1, keepdims=True)
            data = rounded(rows, np.where(top > 0, top, 1), lns).reshape(weights.shape)
            tensors[weights.name] = dataclasses.replace(weights, data=data)
        return self._graph.replace(tensors=tensors)

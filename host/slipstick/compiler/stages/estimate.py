"""Estimates the time of a stage without compiling it."""

import itertools
import math
from collections.abc import Iterable, Sequence

from ...graph import Graph, Node
from ...operators import Family, find
from ...program import Program
from .board_model import BoardModel
from .cut import Crossings, activations_of, tensor_bytes

_FULL = 0.95
"""Share of a weight memory that weights alone may take: parameters lie there as well."""
_LOADED = 1.2
"""Bytes that a streamed layer loads, per byte of its weights: parameters and instructions."""


def weights_of(graph: Graph, node: Node) -> int:
    """Bytes of a layer's weights; 0 if it has none."""
    if find(node.operator).family is not Family.LAYER or len(node.inputs) < 2:
        return 0
    weights = graph.tensors[node.inputs[1]]
    return 0 if weights.data is None else math.prod(weights.shape)


class Estimate:
    """Predicts seconds per image of stages on one board, from the whole network's program.

    Parameters
    ----------
    graph : Graph
        As it was compiled, all passes done.
    board : BoardModel
    whole : Program
        The whole graph's program for this board's hardware.
    crossings : Crossings
    """

    def __init__(
        self, graph: Graph, board: BoardModel, whole: Program, crossings: Crossings
    ) -> None:
        self._board, self._crossings = board, crossings
        cycles: dict[str, int] = {}
        for layer in whole.layers:
            cycles[layer.output] = cycles.get(layer.output, 0) + layer.predicted_cycles
        hardware = board.configuration
        self._cycles = _sums(sum(cycles.get(name, 0) for name in n.outputs) for n in graph.nodes)
        self._weights = _sums(weights_of(graph, node) for node in graph.nodes)
        large = [_maps(graph, node) for node in graph.nodes]
        self._moved = _sums(size if size > hardware.activation_bytes else 0 for size in large)

    def __call__(self, first: int, end: int) -> float:
        """Seconds per image; infinite if nothing of the stage runs on the device."""
        hardware, cycles = self._board.configuration, self._cycles[end] - self._cycles[first]
        if not cycles:
            return math.inf
        weights, moved = (sums[end] - sums[first] for sums in (self._weights, self._moved))
        up, down = self._crossings(first, end)
        if weights > _FULL * hardware.weight_bytes:
            up += int(_LOADED * weights * self._board.loads_per_image)
        wire = self._board.transfer_seconds(up + moved // 2, down + moved // 2)
        return max(cycles / hardware.clock_hz, wire)

    def is_resident(self, first: int, end: int) -> bool:
        """Tells whether all of a stage seems to fit on the chip at once."""
        hardware = self._board.configuration
        weights, moved = (sums[end] - sums[first] for sums in (self._weights, self._moved))
        return not moved and weights <= _FULL * hardware.weight_bytes


def _maps(graph: Graph, node: Node) -> int:
    """Bytes of what a node reads and makes."""
    names = (*activations_of(node, graph.tensors), *node.outputs)
    return sum(tensor_bytes(graph.tensors[name]) for name in names)


def _sums(values: Iterable[int]) -> Sequence[int]:
    return list(itertools.accumulate(values, initial=0))

"""Cuts a graph: some nodes that follow each other become a graph of their own."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import UnsupportedError
from ...graph import Graph, Node, Tensor


def require_stateless(graph: Graph, why: str = "on one board") -> None:
    """UnsupportedError if a network keeps something from run to run."""
    if graph.variables:
        raise UnsupportedError(
            f"{graph.name} keeps {len(graph.variables)} values from run to run, and such networks"
            f" run {why} only: compile it for one target"
        )


def tensor_bytes(tensor: Tensor) -> int:
    """Bytes of one image's tensor."""
    return math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def activations_of(node: Node, tensors: Mapping[str, Tensor]) -> list[str]:
    """The inputs of a node that are not constants, each once."""
    found = (name for name in node.inputs if name and tensors[name].data is None)
    return list(dict.fromkeys(found))


def cut_graph(graph: Graph, ends: Sequence[int]) -> list[Graph]:
    """Cuts a graph into stages.

    Parameters
    ----------
    graph : Graph
        Its nodes stand in an order in which they can run, so that each place between two nodes is a
        cut.
    ends : sequence of int
        How many of the graph's nodes end before each cut, ascending.

    Returns
    -------
    list of Graph
        One more than there are cuts. Tensors that cross a cut keep names, types and quantisation.
    """
    edges = [0, *ends, len(graph.nodes)]
    return [part_of(graph, first, end) for first, end in itertools.pairwise(edges)]


def part_of(graph: Graph, first: int, end: int) -> Graph:
    """The nodes from ``first`` to before ``end`` as a graph: its inputs are what they read, its
    outputs what they make and others need."""
    nodes = graph.nodes[first:end]
    made = {name for node in nodes for name in node.outputs}
    read = [name for node in nodes for name in activations_of(node, graph.tensors)]
    inputs = tuple(name for name in dict.fromkeys(read) if name not in made)
    others = (*graph.nodes[:first], *graph.nodes[end:])
    needed = set(graph.results) | {name for node in others for name in node.inputs}
    outputs = [name for node in nodes for name in node.outputs if name in needed]
    # the network's own outputs and inputs keep their order
    outputs.sort(key=lambda name: graph.outputs.index(name) if name in graph.outputs else -1)
    ordered = sorted(
        inputs, key=lambda name: graph.inputs.index(name) if name in graph.inputs else math.inf
    )
    used = {*made, *inputs, *(name for node in nodes for name in node.inputs if name)}
    return graph.replace(
        inputs=tuple(ordered),
        outputs=tuple(outputs),
        tensors={name: tensor for name, tensor in graph.tensors.items() if name in used},
        nodes=nodes,
    )


class Crossings:
    """Bytes per image that enter and leave stages.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._maker = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
        self._last = dict[str, int]()
        for at, node in enumerate(graph.nodes):
            for name in activations_of(node, graph.tensors):
                self._last[name] = at
        for name in graph.outputs:
            self._last[name] = len(graph.nodes)
        self._rows: dict[int, list[tuple[int, int]]] = {}

    def __call__(self, first: int, end: int) -> tuple[int, int]:
        """(bytes in, bytes out) of the stage of nodes from ``first`` to before ``end``."""
        if first not in self._rows:
            self._rows[first] = self._row(first)
        return self._rows[first][end - first]

    def _row(self, first: int) -> list[tuple[int, int]]:
        """Lists (bytes in, bytes out) of all stages from a node on, by their number of nodes."""
        graph, row, seen, entering = self._graph, [(0, 0)], set[str](), 0
        leaving: dict[int, int] = {}
        # bytes made so far, of which some are not needed any more
        alive = 0
        for at in range(first, len(graph.nodes)):
            node = graph.nodes[at]
            for name in activations_of(node, graph.tensors):
                if self._maker.get(name, -1) < first and name not in seen:
                    seen.add(name)
                    entering += tensor_bytes(graph.tensors[name])
            for name in node.outputs:
                size, last = tensor_bytes(graph.tensors[name]), self._last.get(name, at)
                alive += size
                leaving[max(last, at)] = leaving.get(max(last, at), 0) + size
            alive -= leaving.pop(at, 0)
            row.append((entering, alive))
        return row

"""Tabulates nodes whose results depend on codes at one place."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ..graph import Graph, Node
from ..kernels import run

CODES = 256

LARGEST_ISLAND = 64
"""Nodes that become one table: more are none of a converter's."""


def tabulate_nodes(graph: Graph, source: str, nodes: Sequence[Node]) -> np.ndarray:
    """Returns what nodes make of the codes -128, ..., 127 of one activation.

    Parameters
    ----------
    graph : Graph
    source : str
        The activation.
    nodes : sequence of Node
        As ``run_on_codes`` has them.

    Returns
    -------
    array of int8, (256,)
    """
    return run_on_codes(graph, {source: np.arange(-128, 128, dtype=np.int8)}, nodes)


def run_on_codes(
    graph: Graph, codes: Mapping[str, np.ndarray], nodes: Sequence[Node]
) -> np.ndarray:
    """Returns what nodes make of codes, place by place.

    Parameters
    ----------
    graph : Graph
    codes : mapping of array of int8, (count,)
        Of the activations that the nodes read and do not make.
    nodes : sequence of Node
        In their order. Their constants are single numbers, or the tables of lookups.

    Returns
    -------
    array, (count,)
        The last node's result.
    """
    count = next(iter(codes.values())).size
    tensors = {}
    for name in {name for node in nodes for name in (*node.inputs, *node.outputs)}:
        tensor = graph.tensors[name]
        data, shape = tensor.data, (1, count)
        if data is not None:
            data = data.reshape(1, 1) if data.size == 1 else data
            shape = data.shape
        tensors[name] = dataclasses.replace(tensor, shape=shape, data=data)
    small = graph.replace(tensors=tensors)
    values = {name: each.reshape(1, count) for name, each in codes.items()}
    for node in nodes:
        operands = [values[name] for name in node.inputs if tensors[name].data is None]
        values[node.outputs[0]] = run(node, small, operands)[0]
    return values[nodes[-1].outputs[0]].reshape(-1)

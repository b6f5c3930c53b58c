"""Turns a PRELU with a factor a channel into what the device does."""

import dataclasses

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor
from .clean import fresh_name, replace_nodes


def _lowers(graph: Graph, node: Node) -> bool:
    """Tells whether the factors are a vector of 8-bit numbers, one a channel."""
    if node.operator != "prelu":
        return False
    x, alpha, result = (graph.tensors[name] for name in (*node.inputs, *node.outputs))
    if x.data is not None or alpha.data is None or alpha.data.size == 1:
        return False
    if any(t.quantization is None or len(t.quantization.scale) != 1 for t in (x, alpha, result)):
        return False
    quantization = alpha.quantization
    assert quantization is not None
    factors = alpha.data.astype(np.int64) - quantization.zero_point
    vector = alpha.data.shape[-1] == alpha.data.size == x.shape[-1]
    return vector and factors.min() >= -128 and factors.max() <= 127


def _lowered(graph: Graph, node: Node) -> tuple[list[Node], list[Tensor]] | None:
    """min(x, 0), its product with the factors, max(x, 0) in the result's scale, and their sum.

    One of the summands is zero everywhere, and a sum of codes of one scale is exact in ADD's
    arithmetic: nothing is rounded twice.
    """
    if not _lowers(graph, node):
        return None
    x, result = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    assert x.quantization is not None
    zero_point = x.quantization.zero_point
    name = result.name
    zero = Tensor(
        fresh_name(graph, f"{name}_zero"),
        (1,) * len(x.shape),
        "int8",
        Quantization(x.quantization.scale, zero_point),
        np.full((1,) * len(x.shape), zero_point[0], np.int8),
    )
    below = dataclasses.replace(x, name=fresh_name(graph, f"{name}_below"))
    bent, straight = (
        dataclasses.replace(result, name=fresh_name(graph, f"{name}_{part}"))
        for part in ("bent", "straight")
    )
    plain = {"activation": "none"}
    parts = [
        ("below", "minimum", (x.name, zero.name), below.name, {}),
        ("bent", "mul", (below.name, node.inputs[1]), bent.name, plain),
        ("straight", "relu", (x.name,), straight.name, {}),
        ("", "add", (straight.name, bent.name), name, plain),
    ]
    nodes = [
        Node(f"{node.name}_{part}" if part else node.name, operator, inputs, (output,), options)
        for part, operator, inputs, output, options in parts
    ]
    return nodes, [zero, below, bent, straight]


def lower_prelu(graph: Graph) -> Graph:
    """Without PRELUs whose constant factors are one a channel; every code stays."""
    if graph.semantics != "tflm":
        return graph
    return replace_nodes(graph, _lowered)

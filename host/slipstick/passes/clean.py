"""Drops nodes that change nothing, or whose results nobody reads."""

import dataclasses
from collections.abc import Callable

from ..graph import Graph, Node, Quantization, Tensor


def same_quantization(a: Quantization | None, b: Quantization | None) -> bool:
    """Tells whether two tensors' codes mean the same real numbers."""
    if a is None or b is None:
        return a is b
    return (
        a.axis == b.axis
        and a.scale.tolist() == b.scale.tolist()
        and a.zero_point.tolist() == b.zero_point.tolist()
    )


def fresh_name(graph: Graph, name: str) -> str:
    """A tensor's name that is free: this one, or it with underscores."""
    while name in graph.tensors:
        name += "_"
    return name


def rename_inputs(node: Node, names: dict[str, str]) -> Node:
    """The node with its inputs renamed, where ``names`` has a new name."""
    inputs = tuple(names.get(name, name) for name in node.inputs)
    return dataclasses.replace(node, inputs=inputs) if inputs != node.inputs else node


def replace_nodes(
    graph: Graph, lowered: Callable[[Graph, Node], tuple[list[Node], list[Tensor]] | None]
) -> Graph:
    """With other nodes, and the tensors that they need, instead of some.

    Parameters
    ----------
    graph : Graph
    lowered : callable
        What a node becomes; None: it stays.
    """
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        made, added = lowered(graph, node) or ([node], [])
        nodes += made
        tensors |= {tensor.name: tensor for tensor in added}
    return graph.replace(nodes=tuple(nodes), tensors=tensors)


def _is_identity(graph: Graph, node: Node) -> bool:
    if node.operator not in ("reshape", "pad", "quantize"):
        return False
    source, result = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    if node.operator == "pad" and any(map(any, node.attributes["padding"])):
        return False
    return (
        source.shape == result.shape
        and source.dtype == result.dtype
        and source.data is None
        and same_quantization(source.quantization, result.quantization)
    )


def drop_identities(graph: Graph) -> Graph:
    """Without reshapes to the same shape, paddings by nothing, requantisations to the same codes.

    A node that makes one of the graph's outputs stays, so that the outputs keep their names.
    """
    names: dict[str, str] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        node = rename_inputs(node, names)
        if _is_identity(graph, node) and node.outputs[0] not in graph.results:
            names[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    return graph.replace(nodes=tuple(kept))


def drop_dead_nodes(graph: Graph) -> Graph:
    """Without nodes, and activations, that no output depends on."""
    wanted, kept = set(graph.results), []
    for node in reversed(graph.nodes):
        if wanted & set(node.outputs):
            wanted |= set(node.inputs)
            kept.append(node)
    wanted |= set(graph.sources) | {name for node in kept for name in node.outputs}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in wanted}
    return graph.replace(nodes=tuple(reversed(kept)), tensors=tensors)

"""Runs the lighter of two convolutions that meet in an ADD first."""

import math

from ..graph import Graph, Node

_CONVOLUTIONS = ("conv2d", "depthwise_conv2d")


def _work(graph: Graph, node: Node) -> int:
    """Multiply-accumulates, near enough to compare."""
    weights, result = (graph.tensors[name].shape for name in (node.inputs[1], node.outputs[0]))
    return math.prod(weights) * math.prod(result[1:3])


def order_shortcuts(graph: Graph) -> Graph:
    """With the heavier of an ADD's convolutions next to it, where the order is free.

    The device adds while the array computes what is added: a light convolution in front of the ADD,
    as on the shortcut of a residual block, has not the time for that, the heavy one has.
    """
    nodes = list(graph.nodes)
    for add in graph.nodes:
        if add.operator != "add":
            continue
        makers = [node for node in nodes if node.outputs[0] in add.inputs]
        if len(makers) != 2 or any(node.operator not in _CONVOLUTIONS for node in makers):
            continue
        earlier, later = makers
        start, end = nodes.index(earlier), nodes.index(later)
        made_between = {name for node in nodes[start:end] for name in node.outputs}
        if made_between & set(later.inputs) or _work(graph, later) >= _work(graph, earlier):
            continue
        nodes.insert(start, nodes.pop(end))
    return graph.replace(nodes=tuple(nodes))

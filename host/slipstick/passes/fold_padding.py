"""Folds a PAD by the zero point into the padding of the convolutions that read it."""

import dataclasses

from ..graph import Graph, Node
from .clean import same_quantization

_CONVOLUTIONS = ("conv2d", "depthwise_conv2d")


def _foldable(graph: Graph, node: Node) -> bool:
    """Tells whether all readers are convolutions, and the plane is padded with the code of zero."""
    if node.operator != "pad" or node.outputs[0] in graph.results:
        return False
    source, result = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    padding = node.attributes["padding"]
    if len(source.shape) != 4 or any(padding[0]) or any(padding[3]):
        return False
    quantization = source.quantization
    if quantization is None or len(quantization.zero_point) != 1:
        return False
    if not same_quantization(quantization, result.quantization):
        return False
    if node.attributes["value"] != int(quantization.zero_point[0]):
        return False
    readers = graph.consumers(node.outputs[0])
    return bool(readers) and all(
        reader.operator in _CONVOLUTIONS and node.outputs[0] not in reader.inputs[1:]
        for reader in readers
    )


def _with_padding(node: Node, pad: Node) -> Node:
    (top, bottom), (left, right) = pad.attributes["padding"][1:3]
    old = node.attributes["padding"]
    padding = (old[0] + top, old[1] + bottom, old[2] + left, old[3] + right)
    return dataclasses.replace(
        node,
        inputs=(pad.inputs[0], *node.inputs[1:]),
        attributes={**node.attributes, "padding": padding},
    )


def fold_padding(graph: Graph) -> Graph:
    """Without the PADs that convolutions can do themselves.

    A convolution pads with its input's zero point, so a PAD by that code, of height and width only,
    is more of the same padding.
    """
    while True:
        folded = {node.outputs[0]: node for node in graph.nodes if _foldable(graph, node)}
        if not folded:
            return graph
        nodes = [
            _with_padding(node, folded[node.inputs[0]]) if node.inputs[0] in folded else node
            for node in graph.nodes
            if node.outputs[0] not in folded
        ]
        # a padding of a padding has a convolution for its reader now
        graph = graph.replace(nodes=tuple(nodes))

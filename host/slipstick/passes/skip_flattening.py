"""Lets fully connected layers read vectors as they are, without a reshape before them."""

import dataclasses

from ..graph import Graph, Node
from .clean import same_quantization


def skip_flattening(graph: Graph) -> Graph:
    """With a layer of the source of each reshape that only drops axes of one.

    A mean that keeps its axes gives (1, 1, 1, C). It is the same row as (1, C), but a network that
    is cut cannot rename its tensors on the device: the reshape would be the host's.
    """
    return graph.replace(nodes=tuple(_skipped(graph, node) for node in graph.nodes))


def _skipped(graph: Graph, node: Node) -> Node:
    if node.operator != "fully_connected" or node.attributes.get("keep_dimensions"):
        return node
    maker = graph.producer(node.inputs[0])
    if maker is None or maker.operator != "reshape":
        return node
    source, result = graph.tensors[maker.inputs[0]], graph.tensors[node.inputs[0]]
    size = graph.tensors[node.inputs[1]].shape[-1]
    vectors = all(
        tensor.data is None and tensor.shape == (1,) * (len(tensor.shape) - 1) + (size,)
        for tensor in (source, result)
    )
    if not vectors or not same_quantization(source.quantization, result.quantization):
        return node
    return dataclasses.replace(node, inputs=(source.name, *node.inputs[1:]))

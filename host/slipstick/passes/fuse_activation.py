"""Fuses a RELU that stands alone into the clamp of the operator before it."""

import dataclasses

from ..graph import Graph, Node
from ..operators import Unary, find
from .clean import same_quantization


def _producer_to_fuse(graph: Graph, node: Node) -> Node | None:
    """The node whose clamp can do the work of this one.

    Where the codes mean the same before and after, the activation is a clamp of codes and nothing
    else; a clamp after the producer's own clamp to all codes is one clamp.
    """
    activation = find(node.operator)
    if not isinstance(activation, Unary) or activation.clamp is None:
        return None
    source = node.inputs[0]
    producer = graph.producer(source)
    if producer is None or not find(producer.operator).fuses_activation:
        return None
    if producer.attributes.get("activation", "none") != "none" or source in graph.results:
        return None
    before, after = graph.tensors[source], graph.tensors[node.outputs[0]]
    same = same_quantization(before.quantization, after.quantization) and before.dtype == "int8"
    return producer if same and graph.consumers(source) == [node] else None


def fuse_activation(graph: Graph) -> Graph:
    """Without the RELU, RELU6 and RELU_N1_TO_1 that the operator before them can do."""
    for node in graph.nodes:
        producer = _producer_to_fuse(graph, node)
        if producer is None:
            continue
        fused = dataclasses.replace(
            producer,
            outputs=node.outputs,
            attributes={**producer.attributes, "activation": node.operator},
        )
        nodes = [
            fused if other is producer else other for other in graph.nodes if other is not node
        ]
        graph = graph.replace(nodes=tuple(nodes))
    return graph

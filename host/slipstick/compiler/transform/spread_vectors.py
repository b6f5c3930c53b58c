"""Spreads vectors over pictures, so that a product has two operands of one shape."""

import dataclasses

from slipstick_rtl.config import Configuration

from ...graph import Graph, Node, Tensor
from ...passes.clean import fresh_name, replace_nodes
from ...passes.lower_tiles import NEAREST


def spread_vectors(graph: Graph, configuration: Configuration) -> Graph:
    """With each product of a picture and a vector of its channels as one of two pictures.

    Squeeze-and-excitation multiplies a map of H x W x C by C numbers. The vector becomes a picture
    by a resize_nearest, which the device copies. Results stay bit for bit.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
        Without ``products`` nothing changes.
    """
    return replace_nodes(graph, _spread) if configuration.products else graph


def _spread(graph: Graph, node: Node) -> tuple[list[Node], list[Tensor]] | None:
    if node.operator != "mul":
        return None
    tensors = [graph.tensors[name] for name in node.inputs]
    shape = graph.tensors[node.outputs[0]].shape
    if len(shape) != 4 or any(t.data is not None or t.dtype != "int8" for t in tensors):
        return None
    narrow = [tensor for tensor in tensors if tensor.shape != shape]
    if len(narrow) != 1 or narrow[0].shape != (1, 1, 1, shape[3]):
        return None
    (vector,) = narrow
    spread = dataclasses.replace(
        vector, name=fresh_name(graph, f"{node.outputs[0]}_factor"), shape=shape
    )
    copy = Node(
        f"{node.name}_spread",
        "resize_nearest",
        (vector.name,),
        (spread.name,),
        {"size": shape[1:3], **NEAREST},
    )
    inputs = tuple(spread.name if name == vector.name else name for name in node.inputs)
    return [copy, dataclasses.replace(node, inputs=inputs)], [spread]

"""Splits weights that need nine bits, as those with zero points do, into some of eight."""

import dataclasses

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor
from ..kernels.matrix import centred_weights
from .clean import fresh_name

_INPUT_AXES = {"conv2d": 3, "fully_connected": 1}
"""The weights' axis of input channels."""


def _split(graph: Graph, node: Node) -> list[np.ndarray]:
    """Arrays of int8 whose sum are the weights less their zero points; none if one is enough."""
    if node.operator not in _INPUT_AXES or node.attributes.get("groups", 1) != 1:
        return []
    x, weights = (graph.tensors[name] for name in node.inputs[:2])
    if x.data is not None or weights.data is None or weights.quantization is None:
        return []
    if node.operator == "fully_connected" and x.shape[-1] != weights.shape[1]:
        return []
    rest, parts = centred_weights(weights.data, weights, 0), []
    while rest.any():
        parts.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - parts[-1]
    return parts if len(parts) > 1 else []


def widen_weights(graph: Graph) -> Graph:
    """With the input repeated where weights less their zero point need more than 8 bits.

    The array multiplies 8-bit numbers. A convolution that reads each input channel twice (or
    thrice, for 255) has as many weights for it, and the sums are the same.
    """
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    repeated: dict[tuple[str, int], str] = {}
    for node in graph.nodes:
        parts = _split(graph, node)
        if not parts:
            nodes.append(node)
            continue
        x, old = (graph.tensors[name] for name in node.inputs[:2])
        key = x.name, len(parts)
        if key not in repeated:
            name = repeated[key] = fresh_name(graph, f"{x.name}_x{len(parts)}")
            shape = (*x.shape[:-1], len(parts) * x.shape[-1])
            tensors[name] = dataclasses.replace(x, name=name, shape=shape)
            copies, attributes = (x.name,) * len(parts), {"axis": len(x.shape) - 1}
            layer = f"{node.name}_input"
            nodes.append(Node(layer, "concatenation", copies, (name,), attributes))
        name = fresh_name(graph, f"{node.name}_weights")
        tensors[name] = _joined(old, parts, _INPUT_AXES[node.operator], name)
        inputs = (repeated[key], name, *node.inputs[2:])
        nodes.append(dataclasses.replace(node, inputs=inputs))
    return graph.replace(nodes=tuple(nodes), tensors=tensors)


def _joined(old: Tensor, parts: list[np.ndarray], axis: int, name: str) -> Tensor:
    """All parts behind one another along the input channels, without zero points."""
    assert old.quantization is not None
    data = np.concatenate(parts, axis=axis)
    zero_point = np.zeros_like(old.quantization.zero_point)
    quantization = Quantization(old.quantization.scale, zero_point, old.quantization.axis)
    return Tensor(name, data.shape, old.dtype, quantization, data)

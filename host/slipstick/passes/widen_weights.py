"""Splits weights that need nine bits, as those with zero points do, into some of eight."""

import dataclasses
from typing import Any

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor
from ..kernels.tflite.matrix import centred_weights
from .clean import fresh_name

_OUTPUT_AXES = {"conv2d": 0, "depthwise_conv2d": 3, "fully_connected": 0}
"""The weights' axis of output channels."""

_CHANNELS = 2
"""Repeated channels, where 0 and 1 are repeated rows and columns."""


def _split(graph: Graph, node: Node) -> list[np.ndarray]:
    """Arrays of int8 whose sum are the weights less their zero points; none if one is enough."""
    if node.operator not in _OUTPUT_AXES:
        return []
    x, weights = (graph.tensors[name] for name in node.inputs[:2])
    if x.data is not None or weights.data is None or weights.quantization is None:
        return []
    axis = _OUTPUT_AXES[node.operator]
    rest, parts = centred_weights(weights.data, weights, axis), []
    while rest.any():
        parts.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - parts[-1]
    return parts if len(parts) > 1 else []


def _way(graph: Graph, node: Node) -> int | None:
    """Chooses the inputs to repeat: rows (0), columns (1), channels (2); None if nothing helps."""
    if node.operator == "fully_connected":
        inputs = graph.tensors[node.inputs[1]].shape[1]
        return _CHANNELS if graph.tensors[node.inputs[0]].shape[-1] == inputs else None
    for side in (0, 1):
        # a window over doubled rows takes both of each: only if it leaves none out
        if node.attributes["dilation"][side] == 1:
            return side
    return _CHANNELS if node.attributes.get("groups", 0) == 1 else None


def widen_weights(graph: Graph) -> Graph:
    """With the input repeated where weights less their zero point need more than 8 bits.

    The array multiplies 8-bit numbers. A layer that reads each input twice (or thrice, for 255) has
    as many weights for it, and the sums are the same. A convolution reads each row twice, with
    twice the kernel's height, stride and padding.
    """
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    repeated: dict[tuple[str, int, int], str] = {}
    for node in graph.nodes:
        parts = _split(graph, node)
        way = _way(graph, node) if parts else None
        if way is None:
            nodes.append(node)
            continue
        x, old = (graph.tensors[name] for name in node.inputs[:2])
        key = x.name, way, len(parts)
        if key not in repeated:
            name = repeated[key] = fresh_name(graph, f"{x.name}_x{len(parts)}")
            made, copies = _repetition(x, name, way, len(parts))
            tensors[name] = made
            nodes.append(dataclasses.replace(copies, name=f"{node.name}_input"))
        name = fresh_name(graph, f"{node.name}_weights")
        tensors[name] = _joined(old, parts, way, name)
        inputs = (repeated[key], name, *node.inputs[2:])
        attributes = _stretched(node, way, len(parts))
        nodes.append(dataclasses.replace(node, inputs=inputs, attributes=attributes))
    return graph.replace(nodes=tuple(nodes), tensors=tensors)


def _repetition(x: Tensor, name: str, way: int, times: int) -> tuple[Tensor, Node]:
    """The input with everything ``times`` times, and the node that makes it."""
    shape = list(x.shape)
    if way == _CHANNELS:
        shape[-1] *= times
        inputs, operator = (x.name,) * times, "concatenation"
        attributes: dict[str, Any] = {"axis": len(shape) - 1}
    else:
        shape[1 + way] *= times
        inputs, operator = (x.name,), "resize_nearest"
        attributes = {"size": (shape[1], shape[2]), "align_corners": False}
        attributes["half_pixel_centers"] = False
    made = dataclasses.replace(x, name=name, shape=tuple(shape))
    return made, Node(name, operator, inputs, (name,), attributes)


def _joined(old: Tensor, parts: list[np.ndarray], way: int, name: str) -> Tensor:
    """All parts as one kernel of the repeated input, without zero points."""
    assert old.quantization is not None
    if way == _CHANNELS:
        data = np.concatenate(parts, axis=-1)
    else:
        # the parts of a row, or column, lie side by side
        data = np.stack(parts, axis=2 + way)
        shape = list(old.shape)
        shape[1 + way] *= len(parts)
        data = np.ascontiguousarray(data.reshape(shape))
    zero_point = np.zeros_like(old.quantization.zero_point)
    quantization = Quantization(old.quantization.scale, zero_point, old.quantization.axis)
    return Tensor(name, data.shape, old.dtype, quantization, data)


def _stretched(node: Node, way: int, times: int) -> dict[str, Any]:
    """The attributes over repeated rows or columns; ``parts`` of the products are one's."""
    attributes = {**node.attributes, "parts": times}
    if way != _CHANNELS:
        stride, padding = list(attributes["stride"]), list(attributes["padding"])
        stride[way] *= times
        padding[2 * way : 2 * way + 2] = [times * size for size in padding[2 * way : 2 * way + 2]]
        attributes |= {"stride": tuple(stride), "padding": tuple(padding)}
    return attributes

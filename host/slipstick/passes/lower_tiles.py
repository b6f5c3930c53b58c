"""Turns TILEs into enlargements of pictures or concatenations, which the device copies."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graph import Graph, Node, Tensor
from ..kernels.tflite.resize import nearest_places
from .clean import fresh_name

NEAREST = {"align_corners": False, "half_pixel_centers": True}
"""Attributes of a resize_nearest that repeats pixels: no float32 position is near any rounding."""


_MOST_TIMES = 64
"""Copies of a tensor beyond which the host makes them: a copy of the device has as many parts."""

_LARGEST_SIDE = 1 << 16
"""Pixels of a picture's side, beyond which the host enlarges it."""

_MOST_TILES = 256
"""TILEs of a network that are looked at: each costs as much time as there are nodes."""


def _views(graph: Graph, name: str) -> list[Tensor]:
    """A tensor, and what it is a reshape of: the same numbers in the same order."""
    found = [graph.tensors[name]]
    producer = graph.producer(name)
    while producer is not None and producer.operator == "reshape":
        found.append(graph.tensors[producer.inputs[0]])
        producer = graph.producer(producer.inputs[0])
    return found


def _enlarged(picture: tuple[int, ...], outer: int, times: int) -> tuple[int, int] | None:
    """Height and width of a picture of which each of ``outer`` blocks is repeated, or None."""
    _, height, width, _ = picture
    if outer == height:
        return height * times, width
    return (height, width * times) if outer == height * width else None


def _repeats_pixels(picture: Tensor, attributes: Mapping[str, Any]) -> bool:
    """Tells whether a resize_nearest of a picture shows each of its pixels equally often."""
    return max(attributes["size"]) <= _LARGEST_SIDE and all(
        not target % source
        and np.array_equal(
            nearest_places(source, target, attributes), np.arange(target) * source // target
        )
        for source, target in zip(picture.shape[1:3], attributes["size"], strict=True)
    )


def _smaller(graph: Graph, picture: Tensor) -> Tensor:
    """The picture that this one is enlarged from, one way before and now the other; or itself."""
    for view in _views(graph, picture.name):
        before = graph.producer(view.name)
        if before is not None and before.operator == "resize_nearest":
            source = graph.tensors[before.inputs[0]]
            if view.shape == picture.shape and _repeats_pixels(source, before.attributes):
                return source
    return picture


def _enlargement(graph: Graph, node: Node, repeated: list[int]) -> list[tuple[Node, Tensor]]:
    """A resize_nearest and the reshape of its result; nothing if no picture's pixels repeat."""
    (axis,) = repeated
    shape = graph.tensors[node.inputs[0]].shape
    outer, times = math.prod(shape[:axis]), node.attributes["repeats"][axis]
    for source in _views(graph, node.inputs[0]):
        if len(source.shape) != 4 or source.shape[0] != 1:
            continue
        size = _enlarged(source.shape, outer, times) if shape[axis] == 1 else None
        if size is None:
            continue
        source = _smaller(graph, source)
        attributes = {"size": size, **NEAREST}
        if not _repeats_pixels(source, attributes):
            continue
        result = graph.tensors[node.outputs[0]]
        name = fresh_name(graph, f"{result.name}_picture")
        picture = dataclasses.replace(result, name=name, shape=(1, *size, source.shape[3]))
        made = Node(node.name, "resize_nearest", (source.name,), (name,), attributes)
        flat = Node(
            f"{node.name}_reshape", "reshape", (name,), node.outputs, {"shape": result.shape}
        )
        return [(made, picture), (flat, result)]
    return []


def _concatenation(graph: Graph, node: Node, repeated: list[int]) -> list[tuple[Node, Tensor]]:
    """A tensor behind itself along one axis after the other."""
    made = []
    source = graph.tensors[node.inputs[0]]
    for axis in repeated:
        times = node.attributes["repeats"][axis]
        shape = (*source.shape[:axis], source.shape[axis] * times, *source.shape[axis + 1 :])
        result = graph.tensors[node.outputs[0]]
        name = node.name
        if axis != repeated[-1]:
            name = f"{node.name}_{axis}"
            free = fresh_name(graph, f"{result.name}_{axis}")
            result = dataclasses.replace(result, name=free, shape=shape)
        inputs = (source.name,) * times
        made.append((Node(name, "concatenation", inputs, (result.name,), {"axis": axis}), result))
        source = result
    return made


def lower_tiles(graph: Graph) -> Graph:
    """Without the tiles of codes: Keras 3 writes nearest upsampling as RESHAPE, TILE, RESHAPE."""
    if graph.semantics != "tflm":
        return graph
    tiles = [node for node in graph.nodes if node.operator == "tile"]
    for node in tiles[:_MOST_TILES]:
        repeats = node.attributes["repeats"]
        repeated = [axis for axis, times in enumerate(repeats) if times > 1]
        if not repeated or max(repeats) > _MOST_TIMES:
            continue
        if graph.tensors[node.inputs[0]].dtype != "int8":
            continue
        made = _enlargement(graph, node, repeated) if len(repeated) == 1 else []
        made = made or _concatenation(graph, node, repeated)
        place = graph.nodes.index(node)
        added = tuple(each for each, _ in made)
        graph = graph.replace(
            nodes=(*graph.nodes[:place], *added, *graph.nodes[place + 1 :]),
            tensors={**graph.tensors, **{tensor.name: tensor for _, tensor in made}},
        )
    return _without_detours(graph)


def _without_detours(graph: Graph) -> Graph:
    """With each reshape of a reshape as one of its source."""
    sources: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        if node.operator == "reshape":
            source = sources.get(node.inputs[0], node.inputs[0])
            sources[node.outputs[0]] = source
            node = dataclasses.replace(node, inputs=(source,))
        nodes.append(node)
    return graph.replace(nodes=tuple(nodes))

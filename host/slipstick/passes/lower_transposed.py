"""Turns transposed convolutions into convolutions: the array knows no others."""

import dataclasses
from typing import Any

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor
from .clean import fresh_name, replace_nodes

_LARGEST_STRIDE = 64
_LARGEST_WEIGHTS = 1 << 24
"""Beyond these the phases are more than any device's memory holds: the host runs them."""

_Step = tuple[str, str, tuple[str, ...], dict[str, Any], str]
"""Name, operator, inputs (or none: what the step before made), attributes, name of the result."""


@dataclasses.dataclass(frozen=True)
class _Side:
    """One axis: a convolution's kernel, padding before and behind, outputs; and its taps.

    ``taps[phase]`` are the pairs (tap of the convolution, tap of the transposed one) that make
    every stride-th result from ``phase`` on.
    """

    kernel: int
    before: int
    behind: int
    outputs: int
    taps: tuple[tuple[tuple[int, int], ...], ...]


def _side(size: int, kernel: int, stride: int, cut: int, wanted: int) -> _Side:
    """Result y = stride j + phase sums inputs i and taps k of y + cut = stride i + k."""
    pairs = [
        [((phase + cut) // stride - m, (phase + cut) % stride + stride * m) for m in range(kernel)]
        for phase in range(stride)
    ]
    # how far from j input i lies, for the taps that there are
    kept = [[(place, tap) for place, tap in phase if tap < kernel] for phase in pairs]
    places = [place for phase in kept for place, _ in phase]
    before = max(0, -min(places, default=0))
    extent = max(0, max(places, default=0)) + before + 1
    outputs = max(-(-wanted // stride), size + before - extent + 1)
    behind = outputs + extent - 1 - size - before
    taps = tuple(tuple((place + before, tap) for place, tap in phase) for phase in kept)
    return _Side(extent, before, behind, outputs, taps)


def _tiled(quantization: Quantization | None, times: int) -> Quantization | None:
    """The quantisation of weights whose output channels are repeated."""
    if quantization is None or quantization.axis is None:
        return quantization
    scale, point = (np.tile(a, times) for a in (quantization.scale, quantization.zero_point))
    return Quantization(scale, point, quantization.axis)


def _weights(weights: Tensor, name: str, sides: tuple[_Side, _Side], stride: int) -> Tensor:
    """The kernel of each phase, phases in the order of ``depth_to_space``."""
    assert weights.data is not None and weights.quantization is not None
    filters, channels = weights.shape[0], weights.shape[3]
    shape = (stride * stride * filters, sides[0].kernel, sides[1].kernel, channels)
    zero = weights.quantization.zero_point.reshape(-1, 1, 1, 1)
    data = np.empty((stride, stride, filters, *shape[1:]), weights.data.dtype)
    data[:] = zero
    for down, rows in enumerate(sides[0].taps):
        for across, columns in enumerate(sides[1].taps):
            for to_y, from_y in rows:
                for to_x, from_x in columns:
                    data[down, across, :, to_y, to_x] = weights.data[:, from_y, from_x]
    return dataclasses.replace(
        weights,
        name=name,
        shape=shape,
        data=data.reshape(shape),
        quantization=_tiled(weights.quantization, stride * stride),
    )


def _lowered(graph: Graph, node: Node) -> tuple[list[Node], list[Tensor]] | None:
    """A convolution with an output channel for each phase, their interleaving, and a cut."""
    if not _lowers(graph, node):
        return None
    x, weights = (graph.tensors[name] for name in node.inputs[:2])
    result, stride = graph.tensors[node.outputs[0]], node.attributes["stride"][0]
    sides = tuple(
        _side(size, kernel, stride, cut, wanted)
        for size, kernel, cut, wanted in zip(
            x.shape[1:3],
            weights.shape[1:3],
            node.attributes["padding"],
            result.shape[1:3],
            strict=True,
        )
    )
    filters, phases = weights.shape[0], stride * stride
    name = fresh_name(graph, f"{weights.name}_phases")
    made = _weights(weights, name, (sides[0], sides[1]), stride)
    tensors, bias = [made], node.inputs[2]
    if bias and phases > 1:
        old = graph.tensors[bias]
        assert old.data is not None
        bias, data = fresh_name(graph, f"{bias}_phases"), np.tile(old.data, phases)
        quantization = _tiled(old.quantization, phases)
        tensors.append(Tensor(bias, data.shape, old.dtype, quantization, data))
    attributes = {
        "stride": (1, 1),
        "dilation": (1, 1),
        "padding": (sides[0].before, sides[0].behind, sides[1].before, sides[1].behind),
        "groups": 1,
        "activation": node.attributes["activation"],
    }
    if "clamp" in node.attributes:
        attributes["clamp"] = node.attributes["clamp"]
    height, width = sides[0].outputs, sides[1].outputs
    shapes = {"phases": (1, height, width, phases * filters)}
    steps: list[_Step] = [
        (node.name, "conv2d", (node.inputs[0], made.name, bias), attributes, "phases")
    ]
    if phases > 1:
        shapes["whole"] = (1, height * stride, width * stride, filters)
        steps.append((f"{node.name}_interleave", "depth_to_space", (), {"block": stride}, "whole"))
    last = steps[-1][4]
    if shapes[last] != result.shape:
        sizes = result.shape
        whole = {"starts": (0,) * 4, "steps": (1,) * 4, "sizes": sizes, "shape": sizes}
        steps.append((f"{node.name}_cut", "slice", (), whole, "cut"))
    nodes: list[Node] = []
    for name, operator, inputs, options, place in steps:
        output = (
            result.name if place == steps[-1][4] else fresh_name(graph, f"{result.name}_{place}")
        )
        if output != result.name:
            tensors.append(dataclasses.replace(result, name=output, shape=shapes[place]))
        inputs = inputs or nodes[-1].outputs
        nodes.append(Node(name, operator, inputs, (output,), options))
    return nodes, tensors


def lower_transposed(graph: Graph) -> Graph:
    """Without transposed convolutions of constant weights and equal strides.

    Results whose places differ by a multiple of the stride sum the same taps: a convolution whose
    output channels are those taps' sums, stride x stride times as many, makes them all, and
    ``depth_to_space`` lays them side by side. Sums, and so codes, are the same.
    """
    return replace_nodes(graph, _lowered)


def _lowers(graph: Graph, node: Node) -> bool:
    if node.operator != "transpose_conv2d":
        return False
    y, x = node.attributes["stride"]
    constants = [graph.tensors[name] for name in node.inputs[1:] if name]
    quantized = constants[0].quantization is not None
    filters, height, width, channels = constants[0].shape
    # each phase has the kernel's taps that meet it, and one more on either side at most
    taps = (height // y + 2) * (width // y + 2) * y * y
    small = y <= _LARGEST_STRIDE and taps * filters * channels <= _LARGEST_WEIGHTS
    return y == x and small and quantized and all(tensor.data is not None for tensor in constants)

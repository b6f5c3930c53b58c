"""Concatenations, slices, borders and interleavings as maps that copy rectangles."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ...graph import Graph, Node, Tensor
from ...kernels.tflite.resize import nearest_places
from ..ir.operations import Map, View, Window
from ..ir.requantization import identity
from ..ir.views import HostReason, Views, natural_view, scale_and_zero
from .table import lowers

MOST_WINDOWS = 64
"""Instructions of one copy: more would fill the instruction memory."""

LARGEST_STEP = 16
"""Between places whose sources follow one another: the factor of an enlargement."""

BORDER = -1
"""The source of a place that takes a constant code."""

Part = tuple[Sequence[int], Sequence[int]]
"""The source row of each row of a result (or ``BORDER``), and the source column of each column."""


@dataclass(frozen=True)
class Run:
    """Places ``first``, ``first + step``, ... below ``end``, whose sources are ``stride`` apart."""

    first: int
    end: int
    step: int
    origin: int
    stride: int


def runs(sources: Sequence[int]) -> list[Run]:
    """The fewest runs that cover all places, forwards only.

    Parameters
    ----------
    sources : sequence of int
        The source of each place.
    """
    best = _phase(sources, 0, 1)
    for step in range(2, min(LARGEST_STEP, len(sources)) + 1):
        if len(best) <= step:
            break
        found = [run for phase in range(step) for run in _phase(sources, phase, step)]
        best = min(best, found, key=len)
    return best


def _phase(sources: Sequence[int], phase: int, step: int) -> list[Run]:
    """Runs of every ``step``-th place from ``phase`` on, each as long as it can be."""
    found: list[Run] = []
    places = range(phase, len(sources), step)
    start = 0
    while start < len(places):
        origin, end, stride = sources[places[start]], start + 1, 0
        if end < len(places):
            stride = sources[places[end]] - origin
        if stride >= 0 and not (stride and origin == BORDER):
            while end < len(places) and sources[places[end]] == origin + (end - start) * stride:
                end += 1
        if end == start + 1:
            stride = 0
        found.append(Run(places[start], places[end - 1] + 1, step, origin, stride))
        start = end
    return found


def _activations(node: Node, graph: Graph, views: Views) -> tuple[list[Tensor], Tensor]:
    """Sources of the result's quantisation, one of which the device made, and the result."""
    result = views.activation(node.outputs[0])
    sources = [views.activation(name) for name in node.inputs]
    for source in sources:
        if scale_and_zero(source) != scale_and_zero(result):
            raise HostReason("it changes the scale")
        if len(source.shape) > 4:
            raise HostReason(f"{source.name} of shape {source.shape} is no picture")
    if node.name in views.uncopied:
        raise HostReason("the activation memory has no room for its copy")
    if not any(source.name in views.written_by_device for source in sources):
        raise HostReason("its input comes from the host")
    return sources, result


def _copied(
    node: Node,
    sources: Sequence[Tensor],
    views: Views,
    output: View,
    windows: Sequence[Window],
    *,
    gathers: bool = True,
) -> Map:
    """The map; HostReason if a slice of channels does not begin at a slice, or it is too long."""
    lanes = views.configuration.lanes
    for window in windows:
        first = (window.channels or (0, 0))[0]
        if first % lanes or window.origin_channel % lanes:
            raise HostReason(
                f"it moves channels from {window.origin_channel} on to {first} and on: a copy moves"
                f" whole slices of {lanes}"
            )
    if len(windows) > MOST_WINDOWS:
        raise HostReason(f"it is {len(windows)} rectangles, a copy has at most {MOST_WINDOWS}")
    for source in sources:
        views.read(source.name, natural_view(source))
    names = tuple(source.name for source in sources)
    return Map(node, names, node.outputs[0], output, tuple(windows), gathers=gathers)


def _windows(
    part: Part,
    channels: tuple[int, int] | None,
    origin_channel: int = 0,
    source: int = 0,
    offset: tuple[int, int] = (0, 0),
    border: int = 0,
) -> list[Window]:
    """Rectangles of one source: what is in a border is the code ``border``."""
    made = []
    for down, across in itertools.product(runs(part[0]), runs(part[1])):
        constant = BORDER in (down.origin, across.origin)
        y, x = (
            (0, 0) if constant or run.origin == BORDER else (run.origin, run.stride)
            for run in (down, across)
        )
        made.append(
            Window(
                (down.first + offset[0], down.end + offset[0]),
                (across.first + offset[1], across.end + offset[1]),
                (y[0], x[0]),
                (y[1], x[1]),
                (1, 1),
                identity((border, border) if constant else (-128, 127)),
                (down.step, across.step),
                source,
                channels,
                origin_channel,
            )
        )
    return made


def _last_three(values: Sequence[int], filler: int) -> tuple[int, int, int]:
    """Values of height, width and channels from those of all axes; see ``natural_view``."""
    y, x, c = (filler, filler, filler, *values[max(len(values) - 3, 0) :])[-3:]
    return y, x, c


@lowers("concatenation")
def make_concatenation(node: Node, graph: Graph, views: Views) -> Map:
    """A concatenation along height, width or channels."""
    sources, result = _activations(node, graph, views)
    output = natural_view(result)
    axis = node.attributes["axis"] - len(result.shape) + 3
    windows, at = [], 0
    for number, source in enumerate(sources):
        view = natural_view(source)
        sides = view.height, view.width, view.channels
        offset = tuple(at if place == axis else 0 for place in range(3))
        part = range(view.height), range(view.width)
        channels = (offset[2], offset[2] + view.channels)
        windows += _windows(part, channels, source=number, offset=(offset[0], offset[1]))
        at += sides[axis]
    return _copied(node, sources, views, output, windows)


@lowers("slice")
def make_slice(node: Node, graph: Graph, views: Views) -> Map:
    """A slice; of the channels those that follow one another."""
    sources, _ = _activations(node, graph, views)
    keys = (("starts", 0), ("steps", 1), ("sizes", 1))
    starts, steps, sizes = (_last_three(node.attributes[key], fill) for key, fill in keys)
    if steps[2] != 1 and sizes[2] != 1:
        raise HostReason(f"it takes every {steps[2]}th channel")
    rows, columns = (
        [start + place * step for place in range(size)]
        for start, step, size in zip(starts[:2], steps[:2], sizes[:2], strict=True)
    )
    windows = _windows((rows, columns), (0, sizes[2]), starts[2])
    return _copied(node, sources, views, View(*sizes), windows)


@lowers("pad", "mirror_pad")
def make_border(node: Node, graph: Graph, views: Views) -> Map:
    """A pad or mirror_pad of height and width."""
    sources, result = _activations(node, graph, views)
    view, output = natural_view(sources[0]), natural_view(result)
    *sides, channels = ((0, 0), (0, 0), *node.attributes["padding"])[-3:]
    if any(channels):
        raise HostReason(f"it pads channels by {channels}")
    mirrored = node.operator == "mirror_pad"
    reflects = mirrored and node.attributes["mode"] == "reflect"
    part = []
    for (before, after), size in zip(sides, (view.height, view.width), strict=True):
        places = list(range(size))
        ahead = places[reflects : before + reflects][::-1] if mirrored else [BORDER] * before
        inner = places[: size - reflects]
        behind = inner[len(inner) - after :][::-1] if mirrored else [BORDER] * after
        part.append([*ahead, *places, *behind])
    border = node.attributes.get("value", 0)
    windows = _windows((part[0], part[1]), (0, view.channels), border=border)
    return _copied(node, sources, views, output, windows)


@lowers("resize_nearest")
def make_nearest(node: Node, graph: Graph, views: Views) -> Map:
    """A resize_nearest whose pixels repeat regularly."""
    sources, result = _activations(node, graph, views)
    view, output = natural_view(sources[0]), natural_view(result)
    rows, columns = (
        nearest_places(source, target, node.attributes).tolist()
        for source, target in ((view.height, output.height), (view.width, output.width))
    )
    # a single pixel is read for any part of the result: this can be cut, and made by channels
    gathers = view.pixels > 1
    windows = _windows((rows, columns), (0, view.channels) if gathers else None)
    return _copied(node, sources, views, output, windows, gathers=gathers)


@lowers("depth_to_space", "space_to_depth")
def make_blocks(node: Node, graph: Graph, views: Views) -> Map:
    """A depth_to_space or space_to_depth, a rectangle for each place in a block."""
    sources, result = _activations(node, graph, views)
    view, output = natural_view(sources[0]), natural_view(result)
    block, windows = node.attributes["block"], []
    for number, (y, x) in enumerate(itertools.product(range(block), repeat=2)):
        if node.operator == "space_to_depth":
            part = range(y, view.height, block), range(x, view.width, block)
            channels = (number * view.channels, (number + 1) * view.channels)
            windows += _windows(part, channels)
            continue
        windows.append(
            Window(
                (y, output.height),
                (x, output.width),
                (0, 0),
                (1, 1),
                (1, 1),
                identity(),
                (block, block),
                0,
                (0, output.channels),
                number * output.channels,
            )
        )
    return _copied(node, sources, views, output, windows)

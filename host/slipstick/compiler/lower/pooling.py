"""Average and maximum pooling as maps, cut into rectangles whose windows have one size."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

from ...graph import Graph, Node
from ...kernels.onnx.scaling import code_range
from ...kernels.tflite.scaling import activation_range
from ...operators.pooling import AVERAGE_POOL2D, MAX_POOL2D
from ..ir.operations import Map, Window
from ..ir.requantization import Requantization, half_up, identity
from ..ir.views import HostReason, Views, natural_view, scale_and_zero
from .table import LNS, ONNX, TFLM, lowers

LARGEST_WINDOW = 255
MOST_RECTANGLES = 64

Run = tuple[tuple[int, int], int, int]
"""Output positions (first, behind the last), first input position, taps."""


def averaging(count: int, clamp: tuple[int, int]) -> Requantization:
    """The mean of ``count`` codes, ties away from zero: one multiplication, rounded half up.

    The multiplier m is the next integer above 2^t / count, of 31 bits. For a sum v the error of
    v m / 2^t is positive where v is and at most |v| / 2^t < 128 count / 2^t, far below the distance
    1 / (2 count) from any other sum's quotient to a tie; so ties, and ties only, are pushed away
    from zero. Counts to 255 x 255 keep t within 30..46.
    """
    shift = 30 + (count - 1).bit_length()
    return half_up((1 << shift) // count + 1, shift, 0, clamp)


def averaging_up(count: int, clamp: tuple[int, int]) -> Requantization:
    """The mean of ``count`` codes, ties up: that of codes 128 higher, which are not negative.

    The bound of ``averaging`` holds for sums to 255 ``count`` as well: 2^-22 is far below it.
    """
    raised = averaging(count, clamp)
    return dataclasses.replace(raised, bias=np.array([128 * count]), zero_point=-128)


def clipped_runs(outputs: int, inputs: int, window: int, stride: int, padding: int) -> list[Run]:
    """Maximal runs of output positions whose windows, clipped to the input, move with them."""
    runs: list[Run] = []
    for position in range(outputs):
        start = position * stride - padding
        first, end = max(start, 0), min(start + window, inputs)
        if end <= first:
            raise HostReason(f"window {position} lies in padding only")
        if runs:
            (low, high), origin, taps = runs[-1]
            if taps == end - first and first == origin + (position - low) * stride:
                runs[-1] = ((low, high + 1), origin, taps)
                continue
        runs.append(((position, position + 1), first, end - first))
    return runs


@lowers(AVERAGE_POOL2D.name, arithmetics=(TFLM,))
def make_average(node: Node, graph: Graph, views: Views) -> Map:
    """An average_pool2d; HostReason if the device cannot."""
    clamp = _own_scale_clamp(node, views)
    mean = averaging if node.attributes.get("ties", "away") == "away" else averaging_up
    return pool_map(node, views, lambda down, across: mean(down[2] * across[2], clamp))


@lowers(MAX_POOL2D.name, arithmetics=(TFLM,))
def make_maximum(node: Node, graph: Graph, views: Views) -> Map:
    """A max_pool2d; HostReason if the device cannot."""
    clamp = _own_scale_clamp(node, views)
    return pool_map(node, views, lambda down, across: identity(clamp), take_maximum=True)


@lowers(MAX_POOL2D.name, arithmetics=(ONNX, LNS))
def make_onnx_maximum(node: Node, graph: Graph, views: Views) -> Map:
    """A max_pool2d of ONNX's semantics, whose clamp are codes; HostReason if the device cannot."""
    clamp = code_range(node.attributes)
    return pool_map(node, views, lambda down, across: identity(clamp), take_maximum=True)


def _own_scale_clamp(node: Node, views: Views) -> tuple[int, int]:
    """The codes of a pool's activation; HostReason if it changes the scale."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    scale, zero_point = scale_and_zero(result)
    if scale_and_zero(source) != (scale, zero_point):
        raise HostReason("it changes the scale")
    return activation_range(node.attributes["activation"], scale, zero_point)


def pool_map(
    node: Node,
    views: Views,
    rescale: Callable[[Run, Run], Requantization],
    *,
    take_maximum: bool = False,
) -> Map:
    """The map of a pool, a rectangle for each run of rows and of columns; or HostReason.

    ``rescale`` tells how the sums, or largest codes, of a rectangle's windows become codes.
    """
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    view, output = natural_view(source), natural_view(result)
    window, stride, padding = (node.attributes[key] for key in ("window", "stride", "padding"))
    rows = clipped_runs(output.height, view.height, window[0], stride[0], padding[0])
    columns = clipped_runs(output.width, view.width, window[1], stride[1], padding[2])
    if max(run[2] for run in (*rows, *columns)) > LARGEST_WINDOW:
        raise HostReason(f"its window {tuple(window)} has more than {LARGEST_WINDOW} taps a side")
    if len(rows) * len(columns) > MOST_RECTANGLES:
        raise HostReason(f"its padding cuts it into {len(rows) * len(columns)} rectangles")
    windows = [
        Window(
            down[0],
            across[0],
            (down[1], across[1]),
            (stride[0], stride[1]),
            (down[2], across[2]),
            rescale(down, across),
        )
        for down, across in itertools.product(rows, columns)
    ]
    views.read(source.name, view)
    return Map(
        node, (source.name,), result.name, output, tuple(windows), None, take_maximum=take_maximum
    )

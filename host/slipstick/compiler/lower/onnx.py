"""Maps of graphs with ONNX's semantics: results are rounded as float32 is."""

from collections.abc import Callable

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift

from ...graph import Graph, Node, Tensor
from ...kernels.onnx.scaling import add_tables, average_factor, code_range, factor_parts
from ...operators.pooling import AVERAGE_POOL2D
from ..ir.operations import Map, Window
from ..ir.requantization import Requantization, float_product
from ..ir.views import (
    HostReason,
    Views,
    constant,
    natural_view,
    require_shift,
    scale_and_zero,
)
from .elementwise import function_map, sum_map, summands
from .pooling import LARGEST_WINDOW, Run, pool_map
from .table import ONNX, lowers


@lowers("add", arithmetics=(ONNX,))
def make_onnx_sum(node: Node, graph: Graph, views: Views) -> Map:
    """An add of two activations; HostReason if it broadcasts or has a constant."""
    view, quantizations = summands(node, views)
    sums = add_tables(quantizations, node.attributes)
    shift = encode_shift(Rounding.FLOAT, 30 + sums.bits)
    rescale = Requantization(
        np.array([0]),
        np.array([1 << 30]),
        np.array([shift]),
        np.array([int(Rounding.FLOAT)]),
        sums.zero_point,
        *code_range(node.attributes),
    )
    return sum_map(node, view, sums.tables, rescale)


@lowers("lookup")
def make_lookup(node: Node, graph: Graph, views: Views) -> Map:
    """A lookup of int8 in a table of int8."""
    table = constant(graph, node.inputs[1], "int8")
    return function_map(node, node.inputs[0], views, table)


def _averaging(node: Node, tensors: tuple[Tensor, Tensor], taps: int, count: int) -> Requantization:
    """The sum of some taps over a count of them, from one scale to another."""
    source, result = tensors
    assert source.quantization is not None and result.quantization is not None
    factor = average_factor(source.quantization, result.quantization, count)
    multiplier, shift = factor_parts(np.array([factor]))
    require_shift(int(shift[0]))
    bias = np.array([-taps * scale_and_zero(source)[1]])
    clamp = code_range(node.attributes)
    return float_product(multiplier, shift, bias, scale_and_zero(result)[1], clamp)


def counted_taps(node: Node, source: Tensor, down: Run, across: Run) -> int:
    """Returns how many taps count in each of a rectangle's windows."""
    view, attributes = natural_view(source), node.attributes
    (height, width), padding = attributes["window"], attributes["padding"]
    counted = attributes.get("counted", (0, 0, 0, 0))
    pads = [(padding[i], counted[i], counted[i + 1]) for i in (0, 2)]
    rows = _counted(down, view.height, pads[0], height, attributes["stride"][0])
    return rows * _counted(across, view.width, pads[1], width, attributes["stride"][1])


def _counted(run: Run, size: int, pads: tuple[int, int, int], window: int, stride: int) -> int:
    """Taps of the first window of a run that count; pads are (before, counted before, behind)."""
    start = run[0][0] * stride - pads[0]
    return min(start + window, size + pads[2]) - max(start, -pads[1])


@lowers(AVERAGE_POOL2D.name, arithmetics=(ONNX,))
def make_onnx_average(node: Node, graph: Graph, views: Views) -> Map:
    """An average_pool2d; HostReason if the device cannot."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])

    def mean(down: Run, across: Run) -> Requantization:
        count = counted_taps(node, source, down, across)
        return _averaging(node, (source, result), down[2] * across[2], count)

    return pool_map(node, views, mean)


@lowers("mean", arithmetics=(ONNX,))
def make_onnx_mean(node: Node, graph: Graph, views: Views) -> Map:
    """A mean over height and width; HostReason for others."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    return picture_map(node, views, lambda taps: _averaging(node, (source, result), taps, taps))


def picture_map(node: Node, views: Views, mean: Callable[[int], Requantization]) -> Map:
    """The map of a mean over height and width; HostReason for others.

    ``mean`` tells how the sum of so many codes becomes a code.
    """
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    axes = sorted(node.attributes["axes"])
    if len(source.shape) != 4 or axes != [1, 2]:
        raise HostReason(f"it averages over axes {axes}, not over height and width")
    view = natural_view(source)
    if max(view.height, view.width) > LARGEST_WINDOW:
        raise HostReason(f"{view.height} x {view.width} are more taps than a map has")
    rescale = mean(view.pixels)
    views.read(source.name, view)
    taps = (view.height, view.width)
    window = Window((0, 1), (0, 1), (0, 0), (1, 1), taps, rescale)
    output = type(view)(1, 1, view.channels)
    return Map(node, (source.name,), result.name, output, (window,))

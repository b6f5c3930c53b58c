"""Maps of graphs with ONNX's semantics: every result is rounded once, half to even."""

import itertools

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift

from ..graph import Graph, Node, Tensor
from ..kernels.onnx_scaling import add_tables, average_factor, code_range, factor_parts
from .operations import Map, Window
from .pools import LARGEST_WINDOW, MOST_RECTANGLES, Run, clipped_runs
from .requantization import Requantization, half_even, identity
from .views import HostReason, Views, constant, natural_view, scale_and_zero


def make_onnx_sum(node: Node, graph: Graph, views: Views) -> Map:
    """An add of two activations; HostReason if it broadcasts or has a constant."""
    a, b = (views.activation(name) for name in node.inputs)
    result = views.activation(node.outputs[0])
    if a.shape != b.shape or a.shape != result.shape:
        raise HostReason(f"it joins {a.shape} and {b.shape}: the device does not broadcast")
    # an operand that the device made decides how the other must lie
    known = [name for name in node.inputs if name in views.known]
    view = views.current((known or node.inputs)[0])
    for name in node.inputs:
        views.read(name, view)
    quantizations = [tensor.quantization for tensor in (a, b, result)]
    first, second, output = (item for item in quantizations if item is not None)
    sums = add_tables((first, second, output), node.attributes)
    shift = encode_shift(Rounding.HALF_EVEN, 30 + sums.bits)
    rescale = Requantization(
        np.array([0]),
        np.array([1 << 30]),
        np.array([shift]),
        np.array([int(Rounding.HALF_EVEN)]),
        sums.zero_point,
        *code_range(node.attributes),
    )
    window = Window((0, view.height), (0, view.width), (0, 0), (1, 1), (1, 1), rescale)
    tables = sums.tables.reshape(-1)
    return Map(node, tuple(node.inputs), result.name, view, (window,), tables)


def make_lookup(node: Node, graph: Graph, views: Views) -> Map:
    """A lookup of int8 in a table of int8."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    view = views.current(source.name)
    table = constant(graph, node.inputs[1], "int8")
    views.read(source.name, view)
    window = Window((0, view.height), (0, view.width), (0, 0), (1, 1), (1, 1), identity())
    return Map(node, (source.name,), result.name, view, (window,), table.astype(np.int32))


def _averaging(
    tensors: tuple[Tensor, Tensor], taps: int, count: int, clamp: tuple[int, int]
) -> Requantization:
    """The sum of some taps over a count of them, from one scale to another."""
    source, result = tensors
    assert source.quantization is not None and result.quantization is not None
    factor = average_factor(source.quantization, result.quantization, count)
    multiplier, shift = factor_parts(np.array([factor]))
    if not -31 <= shift[0] <= 7:
        raise HostReason(f"its factor is 2^{shift[0]}, beyond the requantiser")
    bias = np.array([-taps * scale_and_zero(source)[1]])
    return half_even(multiplier, shift, bias, scale_and_zero(result)[1], clamp)


def _require_exact(node: Node) -> None:
    if "float32" in node.attributes:
        raise HostReason(
            "its means often lie halfway between codes, where float32's last bit decides"
        )


def _counted(run: Run, size: int, pads: tuple[int, int, int], window: int, stride: int) -> int:
    """Taps of the first window of a run that count; pads are (before, counted before, behind)."""
    start = run[0][0] * stride - pads[0]
    return min(start + window, size + pads[2]) - max(start, -pads[1])


def make_onnx_pool(node: Node, graph: Graph, views: Views) -> Map:
    """An average_pool2d or max_pool2d; HostReason if the device cannot."""
    _require_exact(node)
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    view, output = natural_view(source), natural_view(result)
    attributes = node.attributes
    window, stride, padding = (attributes[key] for key in ("window", "stride", "padding"))
    counted = attributes.get("counted", (0, 0, 0, 0))
    rows = clipped_runs(output.height, view.height, window[0], stride[0], padding[0])
    columns = clipped_runs(output.width, view.width, window[1], stride[1], padding[2])
    if max(run[2] for run in (*rows, *columns)) > LARGEST_WINDOW:
        raise HostReason(f"its window {tuple(window)} has more than {LARGEST_WINDOW} taps a side")
    if len(rows) * len(columns) > MOST_RECTANGLES:
        raise HostReason(f"its padding cuts it into {len(rows) * len(columns)} rectangles")
    clamp = code_range(attributes)
    maximum = node.operator == "max_pool2d"
    pads = [(padding[i], counted[i], counted[i + 1]) for i in (0, 2)]
    windows = []
    for down, across in itertools.product(rows, columns):
        rescale = identity(clamp)
        if not maximum:
            count = _counted(down, view.height, pads[0], window[0], stride[0])
            count *= _counted(across, view.width, pads[1], window[1], stride[1])
            rescale = _averaging((source, result), down[2] * across[2], count, clamp)
        windows.append(
            Window(
                down[0],
                across[0],
                (down[1], across[1]),
                (stride[0], stride[1]),
                (down[2], across[2]),
                rescale,
            )
        )
    views.read(source.name, view)
    return Map(
        node, (source.name,), result.name, output, tuple(windows), None, take_maximum=maximum
    )


def make_onnx_mean(node: Node, graph: Graph, views: Views) -> Map:
    """A mean over height and width; HostReason for others."""
    _require_exact(node)
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    axes = sorted(node.attributes["axes"])
    if len(source.shape) != 4 or axes != [1, 2]:
        raise HostReason(f"it averages over axes {axes}, not over height and width")
    view = natural_view(source)
    if max(view.height, view.width) > LARGEST_WINDOW:
        raise HostReason(f"{view.height} x {view.width} are more taps than a map has")
    clamp = code_range(node.attributes)
    rescale = _averaging((source, result), view.pixels, view.pixels, clamp)
    views.read(source.name, view)
    taps = (view.height, view.width)
    window = Window((0, 1), (0, 1), (0, 0), (1, 1), taps, rescale)
    output = type(view)(1, 1, view.channels)
    return Map(node, (source.name,), result.name, output, (window,))

"""Sums of two activations, functions of one code, and reductions, as maps."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ...graph import Graph, Node, Quantization, Tensor
from ...kernels.tflite.binary import sub_parameters, sub_tables
from ...kernels.tflite.pooling import mean_multiplier
from ...kernels.tflite.scaling import (
    activation_range,
    add_parameters,
    add_tables,
    quantize_multiplier,
    scalar,
)
from ...operators import Family, find
from ...passes.tables import run_on_codes
from ..ir.operations import CODES, Map, View, Window
from ..ir.requantization import Requantization, identity, requantization
from ..ir.views import HostReason, Views, natural_view, require_shift, scale_and_zero
from .pooling import LARGEST_WINDOW
from .table import NO_OPERATOR, TFLM, lowers

LINEAR_SLOPE = 1 << 19
"""By which hardware multiplies a code that it does not look up."""


@lowers("add", "sub", arithmetics=(TFLM,))
def make_sum(node: Node, graph: Graph, views: Views) -> Map:
    """An add or sub of two activations, or of one and a constant code; or HostReason."""
    if single_operand(node, graph):
        return make_function(node, graph, views)
    view, quantizations = summands(node, views)
    first, second, output = quantizations
    subtracts = node.operator == "sub"
    factors = (sub_parameters if subtracts else add_parameters)(first, second, output)
    scale, zero_point = scalar(output)
    rescale = requantization(
        np.array([factors.multiplier]),
        np.array([factors.shift]),
        np.array([0]),
        zero_point,
        activation_range(node.attributes["activation"], scale, zero_point),
    )
    tables = (sub_tables if subtracts else add_tables)(first, second, output)
    return sum_map(node, view, tables, rescale)


def sum_map(node: Node, view: View, tables: np.ndarray, rescale: Requantization) -> Map:
    """A map of pairs of codes; an operand whose table is a line of the one slope needs none.

    The line's value at code 0 goes into the bias. What is left of the tables is the first operand's
    then, as they are loaded from the first entry on.
    """
    codes = np.arange(-CODES // 2, CODES // 2)
    tables = tables.astype(np.int64).reshape(2, CODES)
    offsets = tables[:, CODES // 2]
    linear = (tables == offsets[:, None] + codes * LINEAR_SLOPE).all(axis=1)
    bias = rescale.bias + offsets[linear].sum()
    if not linear.any() or not -(1 << 31) <= bias[0] < 1 << 31:
        return table_map(node, node.inputs, view, tables, rescale)
    sources = node.inputs[::-1] if linear[0] else node.inputs
    made = table_map(node, sources, view, tables[~linear], dataclasses.replace(rescale, bias=bias))
    return dataclasses.replace(made, shifts=True, table=None if linear.all() else made.table)


def summands(
    node: Node, views: Views
) -> tuple[View, tuple[Quantization, Quantization, Quantization]]:
    """Returns how two activations lie, and their quantisations and the result's; or HostReason."""
    tensors = [views.activation(name) for name in (*node.inputs, node.outputs[0])]
    a, b, result = (tensor.shape for tensor in tensors)
    if a != b or a != result:
        raise HostReason(f"it joins {a} and {b}: the device does not broadcast")
    # an operand that the device made decides how the other must lie
    known = [name for name in node.inputs if name in views.known]
    view = views.current((known or node.inputs)[0])
    for name in node.inputs:
        views.read(name, view)
    first, second, output = (
        tensor.quantization for tensor in tensors if tensor.quantization is not None
    )
    return view, (first, second, output)


def table_map(
    node: Node,
    sources: Sequence[str],
    view: View,
    tables: np.ndarray,
    rescale: Requantization | None = None,
) -> Map:
    """A map of each code, or pair of codes, through a table each; without ``rescale`` as it is."""
    rows, columns = (0, view.height), (0, view.width)
    window = Window(rows, columns, (0, 0), (1, 1), (1, 1), rescale or identity())
    codes = tables.astype(np.int32).reshape(-1)
    return Map(node, tuple(sources), node.outputs[0], view, (window,), codes)


def function_map(node: Node, source: str, views: Views, table: np.ndarray) -> Map:
    """A map of one activation through a table."""
    for name in (source, node.outputs[0]):
        views.activation(name)
    view = views.current(source)
    views.read(source, view)
    return table_map(node, (source,), view, table)


def product_map(node: Node, view: View, tables: np.ndarray, rescale: Requantization) -> Map:
    """A map of the products of what pairs of codes stand for."""
    made = table_map(node, node.inputs, view, tables, rescale)
    return dataclasses.replace(made, multiplies=True)


@lowers("maximum", "minimum", "prelu", "squared_difference", arithmetics=(TFLM,))
def make_choice(node: Node, graph: Graph, views: Views) -> Map:
    """A maximum, minimum, prelu or squared_difference with a constant code; or HostReason."""
    if not single_operand(node, graph):
        raise HostReason("its result depends on more than one code")
    return make_function(node, graph, views)


def single_operand(node: Node, graph: Graph) -> bool:
    """Tells whether each result depends on one code of one activation, of the result's shape."""
    computed = {name for name in node.inputs if graph.tensors[name].data is None}
    constants = [graph.tensors[name] for name in node.inputs if name not in computed]
    if len(computed) != 1 or any(np.prod(tensor.shape) != 1 for tensor in constants):
        return False
    return graph.tensors[computed.pop()].shape == graph.tensors[node.outputs[0]].shape


@lowers(Family.UNARY, "quantize", arithmetics=(TFLM,))
def make_function(node: Node, graph: Graph, views: Views) -> Map:
    """A function of one code as a table of what the host's kernel makes of each."""
    operator = find(node.operator)
    if operator.family is Family.UNARY and not operator.tabulated:
        raise HostReason(NO_OPERATOR)
    (name,) = {name for name in node.inputs if graph.tensors[name].data is None}
    views.activation(name)
    return function_map(node, name, views, tabulate(node, graph))


def tabulate(node: Node, graph: Graph) -> np.ndarray:
    """Returns what the host's kernel makes of all codes -128, ..., 127 of each activation; int8.

    Parameters
    ----------
    node : Node
        Its results depend on one element of each activation; its constants are single numbers.
    graph : Graph

    Returns
    -------
    array of int8
        An axis of 256 per activation, in the order of the inputs.
    """
    names = list(dict.fromkeys(name for name in node.inputs if graph.tensors[name].data is None))
    axes = np.meshgrid(*[np.arange(-128, 128, dtype=np.int8)] * len(names), indexing="ij")
    codes = {name: axis.reshape(-1) for name, axis in zip(names, axes, strict=True)}
    return run_on_codes(graph, codes, [node]).reshape(axes[0].shape)


@lowers("mean", "reduce_sum", "reduce_max", arithmetics=(TFLM,))
def make_reduction(node: Node, graph: Graph, views: Views) -> Map:
    """A mean, reduce_sum or reduce_max over height, width or both; HostReason for others."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    rank, view = len(source.shape), natural_view(source)
    # counted from the height on, as the view does
    axes = [int(axis) % rank - rank + 3 for axis in node.attributes["axes"]]
    if rank > 4 or not set(axes) <= {0, 1}:
        listed = sorted(int(axis) % rank for axis in node.attributes["axes"])
        raise HostReason(f"it reduces axes {listed}, not height and width")
    taps = view.height if 0 in axes else 1, view.width if 1 in axes else 1
    if max(taps) > LARGEST_WINDOW:
        raise HostReason(f"{taps[0]} x {taps[1]} are more taps than a map has")
    output = View(view.height // taps[0], view.width // taps[1], view.channels)
    rescale = _rescale(node, (source, result), taps[0] * taps[1])
    views.read(source.name, view)
    rows, columns = (0, output.height), (0, output.width)
    window = Window(rows, columns, (0, 0), (1, 1), taps, rescale)
    largest = node.operator == "reduce_max"
    return Map(node, (source.name,), result.name, output, (window,), take_maximum=largest)


def _rescale(node: Node, tensors: tuple[Tensor, Tensor], count: int) -> Requantization:
    """Makes the result's code of the sum, or the largest, of so many codes."""
    (scale, zero_point), (result_scale, result_zero) = map(scale_and_zero, tensors)
    if node.operator == "reduce_max":
        if (scale, zero_point) != (result_scale, result_zero):
            raise HostReason("it changes the scale")
        return identity()
    real = scale / result_scale
    summed = node.operator == "reduce_sum"
    multiplier, shift = quantize_multiplier(real) if summed else mean_multiplier(real, count)
    require_shift(shift)
    bias = np.array([-zero_point * count])
    return requantization(np.array([multiplier]), np.array([shift]), bias, result_zero, (-128, 127))

"""Which nodes the device runs, and as what; the others stay with the host, with the reason."""

from collections.abc import Callable

import numpy as np
from slipstick_rtl.config import Configuration

from ..errors import ModelError, UnsupportedError
from ..graph import Graph, Node
from ..kernels.activation import TABLE_OPERATORS, activation_table
from ..kernels.pooling import mean_multiplier
from ..kernels.scaling import activation_range, add_parameters, add_tables
from .convolutions import make_convolution, make_fully_connected
from .operations import Alias, HostOperation, Map, Operation, Window
from .pools import make_pool
from .requantization import identity, requantization
from .views import HostReason, Views, natural_view, scale_and_zero


def _make_add(node: Node, graph: Graph, views: Views) -> Map:
    a, b = (views.activation(name) for name in node.inputs)
    result = views.activation(node.outputs[0])
    if a.shape != b.shape or a.shape != result.shape:
        raise HostReason(f"it adds {a.shape} to {b.shape}: the device does not broadcast")
    # an operand that the device made decides how the other must lie
    known = [name for name in node.inputs if name in views.known]
    view = views.current((known or node.inputs)[0])
    for name in node.inputs:
        views.read(name, view)
    quantizations = [tensor.quantization for tensor in (a, b, result)]
    first, second, output = (item for item in quantizations if item is not None)
    factors = add_parameters(first, second, output)
    scale, zero_point = scale_and_zero(result)
    rescale = requantization(
        np.array([factors.multiplier]),
        np.array([factors.shift]),
        np.array([0]),
        zero_point,
        activation_range(node.attributes["activation"], scale, zero_point),
    )
    window = Window((0, view.height), (0, view.width), (0, 0), (1, 1), (1, 1), rescale)
    tables = add_tables(first, second, output).astype(np.int32).reshape(-1)
    return Map(node, tuple(node.inputs), result.name, view, (window,), tables)


def _make_table(node: Node, graph: Graph, views: Views) -> Map:
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    assert source.quantization is not None and result.quantization is not None
    view = views.current(source.name)
    views.read(source.name, view)
    codes = activation_table(node.operator, source.quantization, result.quantization)
    window = Window((0, view.height), (0, view.width), (0, 0), (1, 1), (1, 1), identity())
    return Map(node, (source.name,), result.name, view, (window,), codes.astype(np.int32))


def _make_mean(node: Node, graph: Graph, views: Views) -> Map:
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    axes = sorted(int(axis) % len(source.shape) for axis in node.attributes["axes"])
    if len(source.shape) != 4 or axes != [1, 2]:
        raise HostReason(f"it averages over axes {axes}, not over height and width")
    view = natural_view(source)
    if max(view.height, view.width) > 255:
        raise HostReason(f"{view.height} x {view.width} are more taps than a map has")
    (scale, zero_point), (result_scale, result_zero) = map(scale_and_zero, (source, result))
    multiplier, shift = mean_multiplier(scale / result_scale, view.pixels)
    if not -31 <= shift <= 7:
        raise HostReason(f"its factor is 2^{shift}, beyond the requantiser")
    views.read(source.name, view)
    rescale = requantization(
        np.array([multiplier]),
        np.array([shift]),
        np.array([-zero_point * view.pixels]),
        result_zero,
        (-128, 127),
    )
    taps = (view.height, view.width)
    window = Window((0, 1), (0, 1), (0, 0), (1, 1), taps, rescale)
    output = type(view)(1, 1, view.channels)
    return Map(node, (source.name,), result.name, output, (window,))


def _make_alias(node: Node, graph: Graph, views: Views) -> Alias:
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    if source.name not in views.written_by_device:
        raise HostReason("its input comes from the host")
    if source.name in graph.outputs and result.name in graph.outputs:
        raise HostReason("both its sides are outputs")
    view = views.current(source.name)
    needs_own_view = {"conv2d", "depthwise_conv2d", "average_pool2d", "max_pool2d", "mean"}
    readers = {reader.operator for reader in graph.consumers(result.name)}
    if readers & needs_own_view and natural_view(result) != view:
        raise HostReason(f"{view} in memory is not the shape {result.shape}")
    return Alias(node, source.name, result.name)


_MAKERS: dict[str, Callable[[Node, Graph, Views], Operation]] = {
    "conv2d": make_convolution,
    "depthwise_conv2d": make_convolution,
    "fully_connected": make_fully_connected,
    "add": _make_add,
    "average_pool2d": make_pool,
    "max_pool2d": make_pool,
    "mean": _make_mean,
    "reshape": _make_alias,
    **dict.fromkeys(TABLE_OPERATORS, _make_table),
}


def _operation(node: Node, graph: Graph, views: Views) -> Operation:
    if node.operator not in _MAKERS:
        return HostOperation(node, "the device has no such operator")
    try:
        made = _MAKERS[node.operator](node, graph, views)
    except HostReason as reason:
        return HostOperation(node, str(reason), _host_macs(node, graph))
    if isinstance(made, Alias):
        views.write(made.result, views.current(made.source))
    elif not isinstance(made, HostOperation):
        views.write(made.result, made.output)
    return made


def _host_macs(node: Node, graph: Graph) -> int:
    """Multiply-accumulates of a layer that the host runs."""
    if node.operator not in ("conv2d", "depthwise_conv2d", "fully_connected"):
        return 0
    weights, result = (graph.tensors[name].shape for name in (node.inputs[1], node.outputs[0]))
    outputs = int(np.prod(result))
    if node.operator == "depthwise_conv2d":
        return outputs * weights[1] * weights[2]
    return outputs * int(np.prod(weights[1:]))


def select(graph: Graph, configuration: Configuration) -> tuple[tuple[Operation, ...], Views]:
    """The operations of a graph, in its order.

    Returns
    -------
    (operations, views)
        The views of every tensor that the device reads or writes.

    Raises
    ------
    UnsupportedError
        If the graph follows semantics that the device cannot.
    ModelError
        If a node refers to a tensor that is not there.
    """
    if graph.semantics != "tflm":
        raise UnsupportedError(
            f"graph {graph.name!r}: semantics must be tflm, not {graph.semantics}"
        )
    for node in graph.nodes:
        for name in (*node.inputs, *node.outputs):
            if name and name not in graph.tensors:
                raise ModelError(
                    f"node {node.name!r} refers to tensor {name!r}, which is not there"
                )
    views = Views(graph, configuration)
    return tuple(_operation(node, graph, views) for node in graph.nodes), views

"""Chooses which nodes the device runs, and as what; says why the host runs the others."""

from collections.abc import Callable, Collection

import numpy as np
from slipstick_rtl.config import INT8, Configuration

from ...errors import ModelError, UnsupportedError
from ...graph import Graph, Node
from ...kernels.lns.codes import arithmetic_of
from ...kernels.tflite.activation import TABLE_OPERATORS
from ..ir.operations import Alias, HostOperation, Map, Operation
from ..ir.views import HostReason, Views, natural_view
from ..partition.offload import REASON
from ..scheduling.groups import LARGEST_LOOP
from .convolutions import make_convolution, make_fully_connected
from .data_movement import make_blocks, make_border, make_concatenation, make_nearest, make_slice
from .elementwise import make_choice, make_function, make_product, make_reduction, make_sum
from .lns import make_log_mean, make_log_pool, make_log_sum
from .onnx import make_lookup, make_onnx_mean, make_onnx_pool, make_onnx_sum
from .pooling import make_pool


def _make_alias(node: Node, graph: Graph, views: Views) -> Alias:
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    if source.name not in views.written_by_device:
        raise HostReason("its input comes from the host")
    if views.cut:
        raise HostReason("activations are on the device in parts")
    if source.name in graph.results and result.name in graph.results:
        raise HostReason("both its sides are outputs")
    view = views.current(source.name)
    needs_own_view = {"conv2d", "depthwise_conv2d", "average_pool2d", "max_pool2d", "mean"}
    needs_own_view |= {"reduce_sum", "reduce_max"}
    readers = {reader.operator for reader in graph.consumers(result.name)}
    if readers & needs_own_view and natural_view(result) != view:
        raise HostReason(f"{view} in memory is not the shape {result.shape}")
    return Alias(node, source.name, result.name)


_MAKERS: dict[str, Callable[[Node, Graph, Views], Operation]] = {
    "conv2d": make_convolution,
    "depthwise_conv2d": make_convolution,
    "fully_connected": make_fully_connected,
    "add": make_sum,
    "sub": make_sum,
    "mul": make_product,
    **dict.fromkeys(("maximum", "minimum", "prelu", "squared_difference"), make_choice),
    "average_pool2d": make_pool,
    "max_pool2d": make_pool,
    **dict.fromkeys(("mean", "reduce_sum", "reduce_max"), make_reduction),
    "reshape": _make_alias,
    "concatenation": make_concatenation,
    "slice": make_slice,
    "pad": make_border,
    "mirror_pad": make_border,
    "resize_nearest": make_nearest,
    "depth_to_space": make_blocks,
    "space_to_depth": make_blocks,
    "lookup": make_lookup,
    **dict.fromkeys(TABLE_OPERATORS, make_function),
}


_ONNX_MAKERS: dict[str, Callable[[Node, Graph, Views], Operation]] = {
    **{
        operator: _MAKERS[operator]
        for operator in (
            "conv2d",
            "depthwise_conv2d",
            "fully_connected",
            "reshape",
            "concatenation",
            "slice",
            "pad",
            "mirror_pad",
            "resize_nearest",
            "depth_to_space",
            "space_to_depth",
        )
    },
    "add": make_onnx_sum,
    "average_pool2d": make_onnx_pool,
    "max_pool2d": make_onnx_pool,
    "mean": make_onnx_mean,
    "lookup": make_lookup,
}

_LOG_MAKERS: dict[str, Callable[[Node, Graph, Views], Operation]] = {
    **_ONNX_MAKERS,
    "add": make_log_sum,
    "average_pool2d": make_log_pool,
    "mean": make_log_mean,
}

_MAKERS_BY_SEMANTICS = {"tflm": _MAKERS, "onnx": _ONNX_MAKERS}


def _makers(semantics: str) -> dict[str, Callable[[Node, Graph, Views], Operation]]:
    """What makes operations of the nodes of a graph of these ``semantics``."""
    if arithmetic_of(semantics) is not None:
        return _LOG_MAKERS
    return _MAKERS_BY_SEMANTICS[semantics]


def _operation(node: Node, graph: Graph, views: Views, on_host: Collection[str] = ()) -> Operation:
    makers = _makers(graph.semantics)
    if node.name in on_host:
        return HostOperation(node, REASON, _host_macs(node, graph))
    if node.operator not in makers:
        return HostOperation(node, "the device has no such operator", _host_macs(node, graph))
    try:
        made = makers[node.operator](node, graph, views)
        if isinstance(made, Map):
            _check_loops(made, views.configuration.lanes)
    except HostReason as reason:
        return HostOperation(node, str(reason), _host_macs(node, graph))
    if isinstance(made, Alias):
        views.write(made.result, views.current(made.source))
    elif not isinstance(made, HostOperation):
        views.write(made.result, made.output)
    return made


def _check_loops(made: Map, lanes: int) -> None:
    """HostReason if a map's columns or slices of channels exceed an instruction's counts."""
    view = made.output
    slices = -(-view.channels // lanes)
    if max(view.width, slices) > LARGEST_LOOP:
        raise HostReason(
            f"{view.width} columns of {slices} slices exceed an instruction ({LARGEST_LOOP})"
        )


def _host_macs(node: Node, graph: Graph) -> int:
    """Multiply-accumulates of a layer that the host runs."""
    if node.operator == "matmul":
        inner = -2 if node.attributes.get("transpose_a") else -1
        columns = graph.tensors[node.inputs[0]].shape[inner]
        return int(np.prod(graph.tensors[node.outputs[0]].shape)) * columns
    if node.operator == "lstm":
        steps = graph.tensors[node.inputs[0]].shape[1]
        return steps * sum(int(np.prod(graph.tensors[name].shape)) for name in node.inputs[3:11])
    if node.operator == "recurrent":
        _, steps, batch, _ = graph.tensors[node.inputs[0]].shape
        sizes = (int(np.prod(graph.tensors[name].shape)) for name in node.inputs[1:3])
        return steps * batch * sum(sizes)
    if node.operator not in ("conv2d", "depthwise_conv2d", "transpose_conv2d", "fully_connected"):
        return 0
    weights, result = (graph.tensors[name].shape for name in (node.inputs[1], node.outputs[0]))
    outputs = int(np.prod(result))
    if node.operator == "transpose_conv2d":
        # each input pixel meets the whole kernel
        return int(np.prod(graph.tensors[node.inputs[0]].shape[:3])) * int(np.prod(weights))
    if node.operator == "depthwise_conv2d":
        return outputs * weights[1] * weights[2]
    return outputs * int(np.prod(weights[1:]))


def require_tensors(graph: Graph) -> None:
    """ModelError if a node refers to a tensor that is not there."""
    for node in graph.nodes:
        for name in (*node.inputs, *node.outputs):
            if name and name not in graph.tensors:
                raise ModelError(
                    f"node {node.name!r} refers to tensor {name!r}, which is not there"
                )


def _check_semantics(graph: Graph, configuration: Configuration) -> None:
    """UnsupportedError if the hardware is not of the graph's number format."""
    if arithmetic_of(graph.semantics) is None and graph.semantics not in _MAKERS_BY_SEMANTICS:
        known = " or ".join(_MAKERS_BY_SEMANTICS)
        raise UnsupportedError(
            f"graph {graph.name!r}: semantics must be {known}, not {graph.semantics}"
        )
    wanted = INT8 if graph.semantics in _MAKERS_BY_SEMANTICS else graph.semantics
    if configuration.number_format != wanted:
        raise UnsupportedError(
            f"network {graph.name!r} holds codes of {wanted}, and the target computes with"
            f" {configuration.number_format}: quantise it for that, or take a target of {wanted}"
        )


def select(
    graph: Graph,
    configuration: Configuration,
    *,
    uncopied: Collection[str] = (),
    cut: bool = False,
    on_host: Collection[str] = (),
) -> tuple[tuple[Operation, ...], Views]:
    """The operations of a graph, in its order.

    Parameters
    ----------
    graph : Graph
        Whose tensors are there: ``require_tensors``.
    configuration : Configuration
    uncopied : collection of str
        Nodes that concatenate, slice or pad, and that the host runs: there is no room for both.
    cut : bool
        Whether activations are on the device in parts only.
    on_host : collection of str
        Nodes that the host runs whether the device could or not: see ``left_out``.

    Returns
    -------
    (operations, views)
        The views of every tensor that the device reads or writes.

    Raises
    ------
    UnsupportedError
        If the graph follows semantics that the device cannot.
    ModelError
        If a node's tensors do not suit each other.
    """
    _check_semantics(graph, configuration)
    views = Views(graph, configuration, uncopied=uncopied, cut=cut)
    return tuple(_operation(node, graph, views, on_host) for node in graph.nodes), views

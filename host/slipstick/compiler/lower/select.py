"""Chooses which nodes the device runs, and as what; says why the host runs the others."""

from collections.abc import Collection

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.number_formats import INT8_FORMAT

from ...errors import ModelError, UnsupportedError
from ...graph import Graph, Node
from ...kernels.lns.codes import arithmetic_of
from ...operators import Family, find
from ..ir.operations import Alias, HostOperation, Map, Operation
from ..ir.views import HostReason, Views, natural_view
from ..partition.offload import REASON
from ..scheduling.groups import LARGEST_LOOP
from .functions import fuse_functions
from .table import NO_OPERATOR, ONNX, TFLM, lowers, maker_of

SEMANTICS = (TFLM, ONNX)
"""Those of graphs of int8 codes."""


@lowers("reshape")
def _make_alias(node: Node, graph: Graph, views: Views) -> Alias:
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    if source.name not in views.written_by_device:
        raise HostReason("its input comes from the host")
    if views.cut:
        raise HostReason("activations are on the device in parts")
    if source.name in graph.results and result.name in graph.results:
        raise HostReason("both its sides are outputs")
    view = views.current(source.name)
    readers = [find(reader.operator) for reader in graph.consumers(result.name)]
    if any(reader.natural_view for reader in readers) and natural_view(result) != view:
        raise HostReason(f"{view} in memory is not the shape {result.shape}")
    return Alias(node, source.name, result.name)


def _operation(node: Node, graph: Graph, views: Views, on_host: Collection[str] = ()) -> Operation:
    maker = maker_of(node.operator, graph.semantics)
    if node.name in on_host:
        return HostOperation(node, REASON, _host_macs(node, graph))
    if maker is None:
        return HostOperation(node, NO_OPERATOR, _host_macs(node, graph))
    try:
        made = maker(node, graph, views)
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
    if find(node.operator).family is not Family.LAYER:
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
    if arithmetic_of(graph.semantics) is None and graph.semantics not in SEMANTICS:
        known = " or ".join(SEMANTICS)
        raise UnsupportedError(
            f"graph {graph.name!r}: semantics must be {known}, not {graph.semantics}"
        )
    wanted = INT8_FORMAT.name if graph.semantics in SEMANTICS else graph.semantics
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
    apart: Collection[str] = (),
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
        Nodes that the host runs whether the device could or not: see ``layers_to_offload``.
    apart : collection of str
        Nodes of layers that take no function behind them: see ``fuse_functions``.

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
    operations = tuple(_operation(node, graph, views, on_host) for node in graph.nodes)
    return fuse_functions(operations, graph.results, configuration, apart), views

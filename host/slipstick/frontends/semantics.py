"""Chooses the runtime whose rounding a network follows: its file's own, or the one asked for."""

import dataclasses
from typing import Any, NoReturn

import numpy as np

from ..errors import UnsupportedError
from ..graph import Graph, Node, Tensor
from ..kernels.onnx.real import from_real, to_real
from ..kernels.tflite.scaling import activation_range, scalar
from ..operators import Unary, find
from ..passes.clean import fresh_name
from ..passes.fuse_activation import fuse_activation

SEMANTICS = ("tflm", "onnx")
"""TensorFlow Lite Micro's, with two roundings of 31-bit factors; ONNX's, in float32."""


def with_semantics(graph: Graph, wanted: str | None) -> Graph:
    """The network by the arithmetic of another reference.

    Parameters
    ----------
    graph : Graph
        As a front-end made it.
    wanted : str or None
        One of ``SEMANTICS``; None: the network's own.

    Returns
    -------
    Graph
        The same codes and weights, rounded as ``wanted`` does.

    Raises
    ------
    UnsupportedError
        If there are no such semantics, or the network cannot follow them: ONNX's networks do not
        follow tflm, and a few of TensorFlow Lite's operators have no counterpart in ONNX's.
    """
    if wanted is None or wanted == graph.semantics:
        return graph
    if wanted not in SEMANTICS:
        raise UnsupportedError(f"semantics must be one of {SEMANTICS}, not {wanted!r}")
    if graph.semantics not in SEMANTICS:
        raise UnsupportedError(
            f"{graph.name}: semantics of a logarithmic network must be {graph.semantics},"
            f" not {wanted}"
        )
    if wanted == "tflm":
        raise UnsupportedError(
            f"{graph.name}: semantics of an ONNX network must be onnx, not {wanted}"
        )
    # what fuses is a clamp of codes in both
    graph = fuse_activation(graph)
    nodes, tables = [], dict[str, Tensor]()
    for node in graph.nodes:
        if _is_table(node, graph):
            table = Tensor(
                fresh_name(graph, f"{node.outputs[0]}_table"),
                (256,),
                "int8",
                data=_tabulated(node, graph),
            )
            tables[table.name] = table
            inputs = (node.inputs[0], table.name)
            nodes.append(dataclasses.replace(node, operator="lookup", inputs=inputs, attributes={}))
        else:
            nodes.append(_translated(node, graph))
    tensors = {**graph.tensors, **tables}
    return graph.replace(nodes=tuple(nodes), tensors=tensors, semantics=str(wanted))


def _is_table(node: Node, graph: Graph) -> bool:
    """Tells whether a node is a function of one int8 code that ONNX's arithmetic has."""
    operator = find(node.operator)
    in_onnx = not isinstance(operator, Unary) or operator.onnx or operator.clamp is not None
    if not operator.tabulated or not in_onnx:
        return False
    return all(graph.tensors[name].dtype == "int8" for name in (node.inputs[0], node.outputs[0]))


def _tabulated(node: Node, graph: Graph) -> np.ndarray:
    """The function of all codes, computed in float32."""
    source, result = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    reals = to_real(np.arange(-128, 128, dtype=np.int8), source)
    operator = find(node.operator)
    if isinstance(operator, Unary) and operator.clamp is None:
        return from_real(operator(reals, node.attributes), result, {})
    activation = "none" if node.operator == "quantize" else node.operator
    clamp = activation_range(activation, *scalar(result.quantization))
    return from_real(reals, result, {"clamp": clamp})


def _translated(node: Node, graph: Graph) -> Node:
    attributes: dict[str, Any] = dict(node.attributes)
    activation = attributes.get("activation", "none")
    if activation != "none":
        quantization = graph.tensors[node.outputs[0]].quantization
        attributes["clamp"] = activation_range(activation, *scalar(quantization))
        attributes["activation"] = "none"
    if node.operator in ("softmax", "log_softmax"):
        if attributes.get("beta", 1.0) != 1.0:
            _refuse(node, graph, f" with beta = {attributes['beta']}")
        return dataclasses.replace(node, attributes={"axis": -1})
    turned = attributes.get("transpose_a") or attributes.get("transpose_b")
    form = find(node.operator).onnx_form
    if form is None or turned:
        _refuse(node, graph, " of transposed matrices" if turned else "")
    attributes |= form.attributes
    return dataclasses.replace(node, operator=form.operator, attributes=attributes)


def _refuse(node: Node, graph: Graph, what: str) -> NoReturn:
    raise UnsupportedError(
        f"{graph.name}: semantics must be {graph.semantics}, its own, not onnx, which has no"
        f" {node.operator}{what} (node {node.name})"
    )

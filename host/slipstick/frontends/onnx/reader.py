"""Reads an ONNX protobuf into plain tables, strictly: bad bytes raise ModelError, nothing else.

Nothing is interpreted here: nodes come in an order in which they can run, constants as arrays.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import defs, helper

from ...errors import ModelError, UnsupportedError
from ..files import MAXIMUM_OPERANDS, MAXIMUM_RANK, MAXIMUM_TABLES, quoted
from .constants import read_tensor, text

OLDEST_OPSET = 10
STANDARD = ("", "ai.onnx")
"""Two names of ONNX's own domain."""

DOMAINS = ("", "com.microsoft", "slipstick")
"""Operators that Slipstick knows are of these; "ai.onnx" is another name of the first."""


@dataclass(frozen=True)
class RawTensor:
    """A graph's input or output as the file declares it; None: a dimension without a number."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


@dataclass(frozen=True)
class RawNode:
    """A node; ``attributes`` are numbers, strings, lists of those and arrays."""

    index: int
    name: str
    domain: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class RawModel:
    """A file's graph, its nodes sorted; ``opset`` is that of ONNX's own operators."""

    inputs: tuple[RawTensor, ...]
    outputs: tuple[RawTensor, ...]
    nodes: tuple[RawNode, ...]
    constants: Mapping[str, np.ndarray]
    opset: int


def parse(data: bytes, name: str) -> onnx.ModelProto:
    """The protobuf; ModelError if the bytes are none."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise ModelError(f"{name} is no ONNX file, damaged or cut short: {error}") from None
    if not model.HasField("graph"):
        raise ModelError(f"{name} must be an ONNX model with a graph, and has none")
    return model


def read_model(data: bytes, name: str, folder: Path | None = None) -> RawModel:
    """The tables of an ONNX file.

    Parameters
    ----------
    data : bytes
    name : str
        The file's name, for messages.
    folder : Path, optional
        Where the file lies: tensors that are kept outside of it must be there too.

    Raises
    ------
    ModelError
        If the bytes are no ONNX file, or one that contradicts itself.
    UnsupportedError
        If it is of a version, or holds constants of a kind, that Slipstick does not read.
    """
    model = parse(data, name)
    graph = model.graph
    opset = _opset(model, name)
    if model.functions:
        first = quoted(text(model.functions[0].name))
        raise UnsupportedError(
            f"{name} must hold no functions of its own, not {first}: inline them"
            " (onnx.inliner.inline_local_functions)"
        )
    if graph.sparse_initializer:
        raise UnsupportedError(f"{name} must hold dense constants, not sparse initializers")
    for what in ("node", "initializer", "input", "output"):
        if len(getattr(graph, what)) > MAXIMUM_TABLES:
            raise ModelError(f"{name} must hold at most {MAXIMUM_TABLES} {what}s")
    constants = _constants(graph, name, folder)
    inputs = tuple(
        _declared(item, name) for item in graph.input if text(item.name) not in constants
    )
    nodes = [_node(item, index, name, folder) for index, item in enumerate(graph.node)]
    known = {*constants, *(tensor.name for tensor in inputs)}
    if len(known) < len(constants) + len(inputs):
        raise ModelError(f"{name} must have inputs of different names")
    outputs = tuple(_declared(item, name) for item in graph.output)
    return RawModel(inputs, outputs, _sorted(nodes, known, name), constants, opset)


def _opset(model: onnx.ModelProto, name: str) -> int:
    newest = defs.onnx_opset_version()
    versions = [item.version for item in model.opset_import if item.domain in STANDARD]
    if not versions:
        used = [node for node in model.graph.node if node.domain in STANDARD]
        if used:
            raise ModelError(
                f"{name} must import a version of ONNX's operators, of which"
                f" {quoted(text(used[0].op_type))} is one"
            )
        # operators of other domains do not depend on it
        return newest
    if len(versions) != 1:
        raise ModelError(f"{name} must import one version of ONNX's operators, not {versions}")
    if not OLDEST_OPSET <= versions[0] <= newest:
        older = versions[0] < OLDEST_OPSET
        advice = "older networks are float: quantise it first" if older else "export it with one"
        raise UnsupportedError(
            f"{name}: opset must be within {OLDEST_OPSET}..{newest}, not {versions[0]}; {advice}"
        )
    return versions[0]


def _constants(graph: onnx.GraphProto, name: str, folder: Path | None) -> dict[str, np.ndarray]:
    constants: dict[str, np.ndarray] = {}
    for tensor in graph.initializer:
        key = text(tensor.name)
        what = f"{name}: initializer {quoted(key)}"
        if not key or key in constants:
            raise ModelError(f"{what} must have a name of its own")
        constants[key] = read_tensor(tensor, what, folder)
    return constants


def _declared(item: onnx.ValueInfoProto, name: str) -> RawTensor:
    key = text(item.name)
    what = f"{name}: {quoted(key)}"
    if not key or not item.type.HasField("tensor_type"):
        raise UnsupportedError(f"{what} must be a named tensor, and is none")
    described = item.type.tensor_type
    try:
        dtype = helper.tensor_dtype_to_np_dtype(described.elem_type).name
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{what}: type must be a known one, not {described.elem_type}") from None
    if not described.HasField("shape"):
        return RawTensor(key, None, dtype)
    sizes = described.shape.dim
    if len(sizes) > MAXIMUM_RANK:
        raise ModelError(f"{what} must have at most {MAXIMUM_RANK} dimensions, not {len(sizes)}")
    shape = tuple(size.dim_value if size.HasField("dim_value") else None for size in sizes)
    return RawTensor(key, shape, dtype)


def _node(node: onnx.NodeProto, index: int, name: str, folder: Path | None) -> RawNode:
    kind = text(node.op_type)
    if not kind.isidentifier():
        raise ModelError(f"{name}: node {index} must have an operator's name, not {quoted(kind)}")
    what = f"{name}: {kind} (node {index})"
    if max(len(node.input), len(node.output), len(node.attribute)) > MAXIMUM_OPERANDS:
        raise ModelError(f"{what} must have at most {MAXIMUM_OPERANDS} inputs and outputs")
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        key = text(attribute.name)
        label = f"{what}: attribute {quoted(key)}"
        if not key or key in attributes:
            raise ModelError(f"{label} must have a name of its own")
        if attribute.type == onnx.AttributeProto.TENSOR:
            attributes[key] = read_tensor(attribute.t, label, folder)
            continue
        try:
            attributes[key] = _plain(helper.get_attribute_value(attribute))
        except (ValueError, TypeError, UnicodeDecodeError) as error:
            raise ModelError(f"{label} cannot be read: {error}") from None
    return RawNode(
        index,
        text(node.name),
        "" if node.domain == "ai.onnx" else text(node.domain),
        kind,
        tuple(map(text, node.input)),
        tuple(map(text, node.output)),
        attributes,
    )


def _plain(value: Any) -> Any:
    """An attribute as Python has such things."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return tuple(_plain(item) for item in value)
    # a graph or a type: no operator that is known takes one
    return type(value).__name__


def _sorted(nodes: Sequence[RawNode], known: set[str], name: str) -> tuple[RawNode, ...]:
    """In an order in which they can run, as near to the file's as possible."""
    makers: dict[str, int] = {}
    for node in nodes:
        for output in filter(None, node.outputs):
            if output in makers or output in known:
                raise ModelError(
                    f"{name}: {node.operator} (node {node.index}) writes {quoted(output)}, which"
                    " must be written once"
                )
            makers[output] = node.index
    readers: dict[int, list[int]] = {}
    missing = [0] * len(nodes)
    for node in nodes:
        for source in {item for item in node.inputs if item and item not in known}:
            if source not in makers:
                raise ModelError(
                    f"{name}: {node.operator} (node {node.index}) reads {quoted(source)}, which is"
                    " no input, no initializer and no node's output"
                )
            readers.setdefault(makers[source], []).append(node.index)
            missing[node.index] += 1
    ready = [index for index, count in enumerate(missing) if not count]
    order: list[RawNode] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(nodes[index])
        for reader in readers.get(index, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        stuck = next(node for node in nodes if missing[node.index])
        raise ModelError(
            f"{name}: {stuck.operator} (node {stuck.index}) depends on its own output: a cycle"
        )
    return tuple(order)

"""Damaged ONNX files: read, run by the kernels and on the golden model, held to onnxruntime."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from ...frontends.onnx import read_network
from ...frontends.onnx.operators import handlers
from ...kernels import run_graph
from .damage import WHOLE, damaged_bytes, other_real, other_shape, other_whole
from .onnx_seeds import onnx_cases, onnx_networks
from .outcomes import READ, Parser
from .tflite import check_compiled, check_described, is_small, random_input

_TYPES = (1, 2, 3, 5, 6, 7, 9, 10, 11, 0, 8, 16, 99)
_TEXT = (b"", b"x", b"\xff", b"SAME_LOWER", b"VALID", b"cubic", b"linear", b"CRD", b"edge")
_COMPILED = 0.25
_BIG = (1 << 20, 1 << 31, 1 << 40, 1 << 62, -(1 << 63))


@cache
def onnx_seeds() -> tuple[bytes, ...]:
    """Small networks of most operators."""
    return tuple(model.SerializeToString() for model in onnx_networks())


@cache
def onnx_and_case_seeds() -> tuple[bytes, ...]:
    """Those, and ONNX's own cases."""
    return (*onnx_seeds(), *(model.SerializeToString() for model in onnx_cases()))


def mutate_onnx(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other bytes, or other entries of the protobuf."""
    if pick.random() < 0.3:
        return damaged_bytes(pick, data, files)
    model = onnx.ModelProto()
    model.ParseFromString(data)
    try:
        for _ in range(pick.choice((1, 1, 1, 2, 3))):
            way = pick.random()
            if way < 0.4 and model.graph.initializer:
                _mutate_constant(pick, pick.choice(model.graph.initializer))
            elif way < 0.8 and model.graph.node:
                _mutate_node(pick, pick.choice(model.graph.node), model.graph)
            else:
                _mutate_border(pick, model)
    except (ValueError, OverflowError):
        # a number that no field can hold cannot be in a file
        return damaged_bytes(pick, data, files)
    return model.SerializeToString()


def _mutate_constant(pick: random.Random, item: TensorProto) -> None:
    try:
        array = numpy_helper.to_array(item)
    # a mutation before may have made anything of it
    except Exception:
        return
    name, way = item.name, pick.random()
    if way < 0.4:
        same = pick.random() < 0.5
        shape = other_shape(pick, array.shape, same_size=same)
        if not same and all(0 <= size <= 64 for size in shape) and pick.random() < 0.8:
            array = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
        item.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), name))
        if list(shape) != list(array.shape):
            del item.dims[:]
            item.dims.extend(size for size in shape if abs(size) < 1 << 63)
    elif way < 0.75 and array.size:
        made = array.copy().reshape(-1)
        place = pick.randrange(made.size)
        with np.errstate(all="ignore"):
            if array.dtype.kind == "f":
                made[place] = np.float64(other_real(pick, float(made[place]))).astype(array.dtype)
            else:
                value = pick.choice((*WHOLE, *_BIG, other_whole(pick, int(made[place]))))
                made[place] = np.array(value, np.int64).astype(array.dtype)
        item.CopyFrom(numpy_helper.from_array(made.reshape(array.shape), name))
    elif way < 0.85:
        kind = pick.choice((np.float32, np.int8, np.uint8, np.int32, np.int64, np.float64, bool))
        with np.errstate(all="ignore"):
            item.CopyFrom(numpy_helper.from_array(array.astype(kind), name))
    elif way < 0.95:
        item.data_type = pick.choice(_TYPES)
    else:
        item.data_location = TensorProto.EXTERNAL
        entry = item.external_data.add()
        entry.key, entry.value = "location", pick.choice(("x.bin", "../x", "/etc/passwd", ""))


def _mutate_node(pick: random.Random, node: onnx.NodeProto, graph: onnx.GraphProto) -> None:
    way = pick.random()
    if way < 0.35 and node.attribute:
        _mutate_attribute(pick, node)
    elif way < 0.55 and node.input:
        names = [name for other in graph.node for name in (*other.input, *other.output)]
        node.input[pick.randrange(len(node.input))] = pick.choice(("", *names))
    elif way < 0.65 and node.input:
        del node.input[pick.randrange(len(node.input))]
    elif way < 0.75:
        node.input.append(pick.choice(("", *(item.name for item in graph.initializer))))
    elif way < 0.85:
        node.domain, node.op_type = pick.choice(tuple(handlers()))
    elif way < 0.92:
        node.output.append(pick.choice(("", "more", node.output[0] if node.output else "")))
    else:
        known = [name for handler in handlers().values() for name in handler.attributes]
        made = node.attribute.add()
        made.name, made.type, made.i = pick.choice(known), onnx.AttributeProto.INT, 1


def _mutate_attribute(pick: random.Random, node: onnx.NodeProto) -> None:
    item: Any = pick.choice(node.attribute)
    way = pick.random()
    if way < 0.1:
        node.attribute.remove(item)
    elif way < 0.25:
        item.type = pick.choice((1, 2, 3, 4, 5, 6, 7, 8, 11))
    elif item.type == onnx.AttributeProto.INT:
        item.i = pick.choice((*WHOLE, *_BIG))
    elif item.type == onnx.AttributeProto.FLOAT:
        with np.errstate(all="ignore"):
            item.f = float(np.float32(other_real(pick, item.f)))
    elif item.type == onnx.AttributeProto.STRING:
        item.s = pick.choice(_TEXT)
    elif item.ints:
        if way < 0.5:
            del item.ints[pick.randrange(len(item.ints))]
        elif way < 0.6:
            item.ints.append(pick.choice(WHOLE))
        else:
            item.ints[pick.randrange(len(item.ints))] = pick.choice((*WHOLE, *_BIG))


def _mutate_border(pick: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    items = [*graph.input, *graph.output]
    if not items or pick.random() < 0.1:
        if model.opset_import:
            model.opset_import[0].version = pick.choice((1, 9, 10, 11, 13, 18, 22, 99, -1))
        return
    described = pick.choice(items).type.tensor_type
    if pick.random() < 0.2:
        described.elem_type = pick.choice(_TYPES)
        return
    sizes = described.shape.dim
    shape = other_shape(pick, [size.dim_value for size in sizes] or [1], same_size=False)
    del sizes[:]
    for place, size in enumerate(shape):
        made = sizes.add()
        if place or pick.random() < 0.5:
            made.dim_value = pick.choice((size, size, size, pick.choice(_BIG)))


def check_onnx(data: bytes, pick: random.Random) -> str:
    """Reads a file; what is small enough is run, by the kernels and on the golden model."""
    graph, _ = read_network(data, "fuzzed", quantised=pick.random() < 0.5)
    if not is_small(graph):
        return READ
    rng = np.random.default_rng(pick.getrandbits(32))
    inputs = [random_input(rng, graph, name) for name in graph.inputs]
    with np.errstate(all="ignore"):
        values = run_graph(graph, inputs)
    check_described(graph, values)
    if pick.random() < _COMPILED:
        check_compiled(graph, inputs, [values[name] for name in graph.outputs])
    return READ


ONNX = Parser(name="onnx", seeds=onnx_and_case_seeds, mutate=mutate_onnx, check=check_onnx)

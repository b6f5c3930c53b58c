"""ONNX's node cases, damaged: whatever an operator is given, it is read or refused by name."""

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from slipstick.errors import ModelError, UnsupportedError
from slipstick.frontends.onnx import read_network
from slipstick.kernels import run_graph
from slipstick.verify import onnx_conformance as conformance

LARGEST = 1 << 16
"""Elements of networks that are run as well."""
WHOLE = (0, 1, -1, 2, 3, 7, 100, -100, 4096, 1 << 31, 1 << 62, -(1 << 63))
REAL = (0.0, -1.0, 1e30, 1e-30, float("nan"), float("inf"))
TEXT = (b"", b"x", b"\xff", b"SAME_LOWER", b"cubic", b"linear", b"CRD", b"edge")


def damaged_array(pick: random.Random, array: np.ndarray) -> np.ndarray:
    """Of another shape, or with another number."""
    way = pick.random()
    if way < 0.1:
        return array.reshape(-1)[: pick.randint(0, array.size)]
    if way < 0.2:
        return array.reshape(-1)
    if way < 0.3:
        return array[np.newaxis]
    if way < 0.5 and array.size:
        made = array.copy()
        numbers: Any = REAL if array.dtype == np.float32 else (0, 1, 2, 5)
        made.reshape(-1)[pick.randrange(array.size)] = pick.choice(numbers)
        return made
    return array


def damage_attributes(pick: random.Random, node: onnx.NodeProto) -> None:
    """Other numbers and words, more of them or fewer."""
    for item in node.attribute:
        if pick.random() < 0.6:
            continue
        if item.type == onnx.AttributeProto.INT:
            item.i = pick.choice(WHOLE)
        elif item.type == onnx.AttributeProto.FLOAT:
            item.f = pick.choice(REAL)
        elif item.type == onnx.AttributeProto.STRING:
            item.s = pick.choice(TEXT)
        elif item.ints:
            if pick.random() < 0.3:
                del item.ints[-1]
            else:
                item.ints[pick.randrange(len(item.ints))] = pick.choice(WHOLE)


def damaged(pick: random.Random, case: conformance.Case) -> bytes:
    """A case with some inputs as constants, damaged."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    arrays = [value for value in case.data[0][0] if isinstance(value, np.ndarray)]
    kept = pick.choice((0, 1, 1, 1, 2, len(arrays)))
    described = zip(model.graph.input, arrays, strict=False)
    for item, array in list(described)[kept:]:
        made = np.ascontiguousarray(damaged_array(pick, array))
        model.graph.initializer.append(numpy_helper.from_array(made, item.name))
    for node in model.graph.node:
        damage_attributes(pick, node)
        if node.input and pick.random() < 0.1:
            node.input[pick.randrange(len(node.input))] = pick.choice(("", node.input[0]))
    for item in model.graph.input:
        sizes = item.type.tensor_type.shape.dim
        if sizes and pick.random() < 0.1:
            pick.choice(sizes).dim_value = pick.choice((0, 1, 2, 5, -1, 1 << 40))
    return model.SerializeToString()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_cases(seed: int) -> None:
    """What is read runs as well, and gives what its tensors say."""
    pick = random.Random(seed)
    cases = [case for case in conformance.cases() if case.reason != conformance.TYPES]
    read = 0
    for _ in range(500):
        data = damaged(pick, pick.choice(cases))
        try:
            graph, _ = read_network(data, quantised=False)
        except (ModelError, UnsupportedError):
            continue
        read += 1
        if sum(int(np.prod(tensor.shape)) for tensor in graph.tensors.values()) > LARGEST:
            continue
        inputs = [
            np.ones((2, *tensor.shape[1:]), tensor.dtype)
            for tensor in (graph.tensors[name] for name in graph.inputs)
        ]
        with np.errstate(all="ignore"):
            values = run_graph(graph, inputs)
        for name, value in values.items():
            tensor = graph.tensors[name]
            assert (value.dtype, value.shape[1:]) == (tensor.dtype, tensor.shape[1:]), name
    assert read > 50

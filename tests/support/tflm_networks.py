"""One-operator networks of any inputs, held against tflm: kernels and golden session."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as extra
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_real as real
from slipstick.writers.tflite import TfliteWriter
from slipstick_rtl.config import Configuration
from tflm_cases import codes, scale, zero_point

SMALL = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 15)

Shape = tuple[int, ...]
Described = dict[str, Any]
"""Arguments of ``TfliteWriter.tensor``."""


def described(shape: Shape, quantization: tuple[float, int], **more: Any) -> Described:
    """An int8 tensor."""
    return {"shape": shape, "scale": quantization[0], "zero_point": quantization[1], **more}


def integers(values: Any) -> Described:
    """A constant of int32."""
    data = np.array(values, np.int32)
    return {"shape": data.shape, "dtype": "int32", "data": data}


def network(
    operator: basic.Operator, inputs: Sequence[Described], outputs: Sequence[Described]
) -> bytes:
    """A network of one operator; inputs with ``data`` are constants."""
    writer = TfliteWriter()
    names = []
    for kind, tensors in (("x", inputs), ("y", outputs)):
        names.append([writer.tensor(f"{kind}{n}", **each) for n, each in enumerate(tensors)])
    writer.add(operator, *names)
    fed = [name for name, each in zip(names[0], inputs, strict=True) if "data" not in each]
    return writer.to_bytes(fed, names[1])


def check(data: bytes, inputs: Sequence[np.ndarray], *, lifted: bool = False) -> Program:
    """Kernels and golden session give tflm's codes, all of them; returns the program.

    Outputs that are ``lifted`` have an axis more, the batch, than tflm's.
    """
    wanted = TflmReference(data).run(*inputs)
    graph = load_tflite_bytes(data)
    values = kernels.run_graph(graph, inputs)
    program = compile_graph(graph, SMALL)
    with InferenceSession(program, open_device("model", SMALL)) as session:
        actual = session.run(None, dict(zip(graph.inputs, inputs, strict=True)))
    for name, expected, value in zip(graph.outputs, wanted, actual, strict=True):
        assert values[name].dtype == expected.dtype == value.dtype, name
        if lifted:
            expected = expected.reshape(len(inputs[0]), *graph.tensors[name].shape[1:])
        np.testing.assert_array_equal(values[name], expected, name)
        np.testing.assert_array_equal(value, expected, name)
    return program


def unary(
    rng: Generator, operator: basic.Operator, shape: Shape, out: Shape, *constants: Described
) -> Program:
    """Checks an operator that keeps the quantisation, on a batch of random codes."""
    same = scale(rng), zero_point(rng)
    data = network(operator, [described(shape, same), *constants], [described(out, same)])
    return check(data, [codes(rng, (3, *shape[1:]))])


def random_shape(rng: Generator, rank: int = 4, largest: int = 7) -> Shape:
    """A shape with batch 1."""
    return (1, *(int(size) for size in rng.integers(1, largest + 1, rank - 1)))


def odd_networks(rng: Generator) -> list[bytes]:
    """Small networks of the operators with the most to check, to be damaged."""
    same, shape = (0.1, 3), (1, 4, 4, 2)
    x, y = described(shape, same), described((1, 2, 4, 2), same)
    filters = described((2, 3, 3, 2), (0.01, 0), data=codes(rng, (2, 3, 3, 2)))
    wide = described((1, 8, 8, 2), same)
    old = {**x, "dtype": "uint8"}
    old_filters = {**filters, "dtype": "uint8", "data": codes(rng, (2, 3, 3, 2), "uint8")}
    number = {"shape": shape, "dtype": "float32"}
    row = {"shape": (1, 3), "dtype": "float32"}
    matrix = {"shape": (3, 3), "dtype": "float32", "data": rng.normal(size=(3, 3))}
    bias = {"shape": (3,), "dtype": "float32", "data": rng.normal(size=3)}
    strides = [integers([0, 3, 0, 0]), integers([1, -9, 4, 2]), integers([1, -2, 1, 1])]
    return [
        network(extra.Split(count=2), [integers([1]), x], [y, y]),
        network(extra.SplitV(count=2), [x, integers([2, -1]), integers([1])], [y, y]),
        network(extra.StridedSlice(end_mask=4), [x, *strides], [y]),
        network(extra.Concatenation(axis=1), [y, y], [x]),
        network(extra.ResizeBilinear(), [x, integers([8, 8])], [wide]),
        network(extra.TransposeConv(stride=(2, 2)), [integers([1, 8, 8, 2]), filters, x], [wide]),
        network(functions.Mul(), [x, described((1, 1, 1, 2), same)], [x]),
        network(extra.MirrorPad(), [x, integers([[0, 0], [2, 2], [2, 2], [0, 0]])], [wide]),
        network(basic.Conv2D(), [old, old_filters], [old]),
        network(real.Tile(), [y, integers([1, 2, 1, 1])], [x]),
        network(real.Div(), [number, {**number, "data": np.full(shape, 0.5)}], [number]),
        network(basic.FullyConnected(), [row, matrix, bias], [row]),
    ]

"""Blocks of the networks that people have, against tflm: every layer of the golden session."""

import math
from typing import Any

import numpy as np
import pytest
from program_runner import run_program
from slipstick.compiler import compile_graph
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from slipstick.writers.tflite import TfliteWriter
from slipstick_rtl.config import Configuration

HARDWARE = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 15)


class Network:
    """A network layer by layer; the last tensor is what the next layer reads."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.writer, self.last, self._count = TfliteWriter(), "input", 0
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.quantizations: dict[str, tuple[float, int]] = {}
        self.tensor("input", shape, (0.05, 3))

    def tensor(self, name: str, shape: tuple[int, ...], quantization: tuple[float, int]) -> str:
        self.writer.tensor(name, shape, scale=quantization[0], zero_point=quantization[1])
        self.shapes[name], self.quantizations[name] = shape, quantization
        return name

    def fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def random(self) -> tuple[float, int]:
        return float(self.rng.uniform(0.03, 0.06)), int(self.rng.integers(-20, 20))

    def layer(
        self,
        operator: first.Operator,
        shape: tuple[int, ...],
        others: list[str] | None = None,
        quantization: tuple[float, int] | None = None,
    ) -> str:
        """An operator that reads the last tensor and others, and makes the last one."""
        name = self.tensor(self.fresh(), shape, quantization or self.quantizations[self.last])
        self.writer.add(operator, [self.last, *(others or [])], [name])
        self.last = name
        return name

    def integers(self, values: Any) -> str:
        data = np.array(values, np.int32)
        return self.writer.tensor(self.fresh(), data.shape, "int32", data=data)

    def weights(self, shape: tuple[int, ...], axis: int) -> list[str]:
        """Weights and a bias of random codes."""
        count, data = shape[axis], self.rng.integers(-127, 128, shape)
        scales = self.rng.uniform(0.5, 1.0, count) / 40 / np.sqrt(data.size / count)
        name = self.writer.tensor(self.fresh(), shape, scale=scales, axis=axis, data=data)
        bias = self.rng.integers(-900, 900, count)
        return [name, self.writer.tensor(self.fresh(), (count,), "int32", scale=1.0, data=bias)]

    def conv(
        self,
        filters: int,
        kernel: int,
        *,
        quantization: tuple[float, int] | None = None,
        **options: Any,
    ) -> str:
        """A SAME convolution."""
        _, height, width, channels = self.shapes[self.last]
        stride = options.get("stride", (1, 1))
        shape = (1, -(-height // stride[0]), -(-width // stride[1]), filters)
        weights = self.weights((filters, kernel, kernel, channels), 0)
        operator = first.Conv2D(**options)
        return self.layer(operator, shape, weights, quantization or self.random())

    def depthwise(self, kernel: int, multiplier: int = 1, **options: Any) -> str:
        """A SAME depthwise convolution."""
        _, height, width, channels = self.shapes[self.last]
        filters = channels * multiplier
        weights = self.weights((1, kernel, kernel, filters), 3)
        operator = first.DepthwiseConv2D(multiplier=multiplier, **options)
        return self.layer(operator, (1, height, width, filters), weights, self.random())

    def check(self, outputs: list[str] | None = None) -> Program:
        """All tensors that come to the host are tflm's, inspected or not; the program."""
        data = self.writer.to_bytes(["input"], outputs or [self.last])
        graph = load_tflite_bytes(data)
        image = self.rng.integers(-128, 128, self.shapes["input"]).astype(np.int8)
        expected = TflmReference(data).run_layers(image)
        program = compile_graph(graph, HARDWARE)
        for made in (program, compile_graph(graph, HARDWARE, inspect=True)):
            values = run_program(made, {"input": image}, order="post_first")
            assert set(graph.outputs) <= set(values)
            for name in set(values) & set(expected):
                np.testing.assert_array_equal(values[name], expected[name], name)
        return program


def hosted(program: Program) -> list[str]:
    """The operators that the host runs."""
    return [layer.operator for layer in program.layers if layer.where == "host"]


def test_u_net() -> None:
    network = Network(1, (1, 12, 8, 3))
    same = network.random()
    skip = network.conv(8, 3, activation="RELU", quantization=same)
    network.layer(first.MaxPool2D(window=(2, 2), stride=(2, 2)), (1, 6, 4, 8))
    network.conv(16, 3, activation="RELU")
    shape, inputs = network.integers([1, 12, 8, 8]), network.last
    weights, bias = network.weights((8, 2, 2, 16), 0)
    up = network.tensor(network.fresh(), (1, 12, 8, 8), same)
    network.writer.add(ops.TransposeConv(stride=(2, 2)), [shape, weights, inputs, bias], [up])
    network.last = skip
    network.layer(ops.Concatenation(axis=3), (1, 12, 8, 16), [up])
    network.conv(4, 1)
    assert hosted(network.check()) == []


def test_inception() -> None:
    network = Network(2, (1, 7, 9, 3))
    stem, same = network.conv(8, 3, stride=(2, 2)), network.random()
    branches = []
    for kernel, filters in ((1, 8), (3, 12), (5, 4)):
        network.last = stem
        branches.append(network.conv(filters, kernel, activation="RELU6", quantization=same))
    network.last = branches[0]
    network.layer(ops.Concatenation(axis=3), (1, 4, 5, 24), branches[1:])
    network.layer(first.AveragePool2D(window=(3, 3), stride=(1, 1), padding="SAME"), (1, 4, 5, 24))
    network.conv(5, 1)
    assert hosted(network.check()) == []


def test_squeeze_and_excite() -> None:
    network = Network(3, (1, 6, 6, 4))
    block = network.conv(8, 3, activation="RELU")
    axes = network.integers([1, 2])
    network.layer(first.Mean(keep_dimensions=True), (1, 1, 1, 8), [axes], network.random())
    network.conv(4, 1, activation="RELU")
    network.conv(8, 1)
    gate = network.layer(first.Logistic(), (1, 1, 1, 8), quantization=(1 / 256, -128))
    network.last = block
    network.layer(functions.Mul(), (1, 6, 6, 8), [gate], network.random())
    network.conv(3, 1)
    assert hosted(network.check()) == ["mul"]


def test_shuffle_net() -> None:
    network = Network(4, (1, 4, 6, 3))
    whole = network.conv(16, 3)
    halves = [network.tensor(network.fresh(), (1, 4, 6, 8), network.quantizations[whole])]
    halves.append(network.tensor(network.fresh(), (1, 4, 6, 8), network.quantizations[whole]))
    network.writer.add(ops.Split(count=2), [network.integers([3]), whole], halves)
    network.last = halves[1]
    network.conv(8, 1, activation="RELU")
    network.depthwise(3)
    network.conv(8, 1, activation="RELU", quantization=network.quantizations[halves[0]])
    network.layer(ops.Concatenation(axis=3), (1, 4, 6, 16), [halves[0]])
    network.layer(first.Reshape(shape=(1, 4, 6, 2, 8)), (1, 4, 6, 2, 8))
    order = network.integers([0, 1, 2, 4, 3])
    network.layer(ops.Transpose(), (1, 4, 6, 8, 2), [order])
    network.layer(first.Reshape(shape=(1, 4, 6, 16)), (1, 4, 6, 16))
    network.conv(4, 1)
    assert set(hosted(network.check())) <= {"transpose", "reshape"}


def test_feature_pyramid() -> None:
    network = Network(5, (1, 8, 8, 3))
    fine = network.conv(8, 3)
    network.layer(functions.LeakyRelu(alpha=0.1), (1, 8, 8, 8), quantization=network.random())
    same = network.quantizations[network.last]
    fine = network.last
    network.conv(8, 3, stride=(2, 2), quantization=same)
    coarse = network.conv(8, 3, quantization=same)
    size = network.integers([8, 8])
    network.layer(ops.ResizeNearest(), (1, 8, 8, 8), [size])
    network.layer(ops.Concatenation(axis=3), (1, 8, 8, 16), [fine])
    head = network.conv(6, 1)
    network.last = coarse
    other = network.conv(6, 1)
    boxes = []
    for name, cells in ((head, 64), (other, 16)):
        network.last = name
        boxes.append(network.layer(first.Reshape(shape=(1, cells * 2, 3)), (1, cells * 2, 3)))
    assert hosted(network.check(boxes)) == []


def test_dilated_head() -> None:
    network = Network(6, (1, 9, 9, 3))
    network.conv(8, 3, dilation=(2, 2), activation="RELU")
    network.depthwise(3, multiplier=2, dilation=(3, 3))
    network.conv(5, 1)
    network.layer(ops.ResizeBilinear(half_pixel_centers=True), (1, 18, 18, 5),
                  [network.integers([18, 18])])  # fmt: skip
    program_outputs = network.fresh()
    network.writer.tensor(program_outputs, (1, 18, 18), "int32")
    network.writer.add(functions.ArgMax(), [network.last, network.integers([3])], [program_outputs])
    assert hosted(network.check([program_outputs])) == ["resize_bilinear", "arg_max"]


def test_face_detector() -> None:
    network = Network(7, (1, 10, 10, 3))
    for filters in (8, 12):
        network.conv(filters, 3)
        data = network.rng.integers(-128, 128, (1, 1, filters))
        slopes = network.writer.tensor(network.fresh(), data.shape, scale=0.004, data=data)
        shape = network.shapes[network.last]
        network.layer(functions.Prelu(), shape, [slopes], network.random())
        border = network.integers([[0, 0], [1, 0], [0, 1], [0, 0]])
        network.layer(first.Pad(), (1, shape[1] + 1, shape[2] + 1, filters), [border])
        height, width = (shape[1] + 1) // 2, (shape[2] + 1) // 2
        network.layer(first.MaxPool2D(window=(2, 2), stride=(2, 2)), (1, height, width, filters))
    flat = math.prod(network.shapes[network.last])
    operator = first.FullyConnected()
    network.layer(operator, (1, 3), network.weights((3, flat), 0), network.random())
    network.layer(first.Softmax(), (1, 3), quantization=(1 / 256, -128))
    assert hosted(network.check()) == ["softmax"]


@pytest.mark.parametrize("window", [(9, 1), (1, 9), (9, 9)])
def test_large_pools(window: tuple[int, int]) -> None:
    network = Network(8, (1, 9, 9, 3))
    network.conv(8, 3)
    shape = (1, 10 - window[0], 10 - window[1], 8)
    network.layer(first.AveragePool2D(window=window, stride=(1, 1)), shape)
    assert hosted(network.check()) == []


def test_shapes_that_are_computed() -> None:
    """What converters write for a free batch: SHAPE, STRIDED_SLICE, PACK in front of RESHAPE."""
    network = Network(9, (1, 6, 4, 3))
    picture = network.conv(8, 3)
    shape, count, whole = network.fresh(), network.fresh(), network.fresh()
    network.writer.tensor(shape, (4,), "int32")
    network.writer.tensor(count, (), "int32")
    network.writer.tensor(whole, (3,), "int32")
    network.writer.add(ops.ShapeOf(), [picture], [shape])
    spans = [network.integers([place]) for place in (0, 1, 1)]
    network.writer.add(ops.StridedSlice(shrink_axis_mask=1), [shape, *spans], [count])
    sides = [network.integers(12), network.integers(16)]
    network.writer.add(ops.Pack(count=3, axis=0), [count, *sides], [whole])
    network.layer(first.Reshape(shape=(1, 12, 16)), (1, 12, 16), [whole])
    network.layer(first.Relu(), (1, 12, 16))
    program = network.check()
    assert [layer.operator for layer in program.layers] == ["conv2d", "reshape", "relu"]


@pytest.mark.parametrize("kind", [first.Mean, functions.Sum, functions.ReduceMax])
def test_reductions_run_on_the_device(kind: type[Any]) -> None:
    for axes in [(1,), (2,), (1, 2)]:
        for keep in (False, True):
            network = Network(10, (1, 5, 7, 3))
            network.conv(6, 3)
            kept = tuple(1 if axis in axes else size for axis, size in enumerate((1, 5, 7, 6)))
            short = tuple(size for axis, size in enumerate((1, 5, 7, 6)) if axis not in axes)
            place = network.integers(axes)
            quantization = (1.1, -3) if kind is functions.Sum else None
            network.layer(
                kind(keep_dimensions=keep), kept if keep else short, [place], quantization
            )
            network.layer(functions.LeakyRelu(alpha=0.2), network.shapes[network.last])
            assert hosted(network.check()) == []

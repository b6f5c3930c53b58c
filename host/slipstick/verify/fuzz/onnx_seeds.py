"""Small ONNX networks of one operator each: of codes, and of real numbers between codes."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ...operators import FUNCTIONS, onnx_pooling
from .. import onnx_conformance as conformance

MICROSOFT = "com.microsoft"
_LARGEST_CASE = 1 << 14
_OPSET, _IR = 21, 10
_SCALE, _ZERO = 0.05, 3


class Network:
    """A network under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def constant(self, values: Any, kind: str) -> str:
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def input(self, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> str:
        name = self.name()
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def add(self, kind: str, inputs: Sequence[str], domain: str = "", **options: Any) -> str:
        name = self.name()
        node = helper.make_node(kind, inputs, [name], f"{kind}_{name}", domain=domain, **options)
        self.nodes.append(node)
        return name

    def meaning(self, scale: float = _SCALE, zero: int = _ZERO) -> list[str]:
        return [self.constant(scale, "float32"), self.constant(zero, "int8")]

    def quantised(self, x: str) -> str:
        return self.add("QuantizeLinear", [x, *self.meaning()])

    def real(self, codes: str) -> str:
        return self.add("DequantizeLinear", [codes, *self.meaning()])

    def model(self, output: str, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
        described = helper.make_tensor_value_info(output, kind, None)
        graph = helper.make_graph(self.nodes, "seed", self.inputs, [described], self.constants)
        domains = [helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=_IR)


def between(kind: str, shape: Sequence[int], *more: Any, **options: Any) -> onnx.ModelProto:
    """An operator of real numbers between codes; ``more`` are its constants, None for a second
    input of the same shape."""
    net = Network()
    inputs = [net.real(net.quantised(net.input(("N", *shape[1:]))))]
    for values in more:
        if values is None:
            inputs.append(net.real(net.quantised(net.input(("N", *shape[1:])))))
        else:
            inputs.append(net.constant(values, np.asarray(values).dtype.name))
    made = net.add(kind, inputs, **options)
    return net.model(net.real(net.quantised(made)))


def weighted(kind: str, shape: Sequence[int], weights: Sequence[int], **options: Any) -> Any:
    """A layer with quantised weights and a bias."""
    net = Network()
    x = net.real(net.quantised(net.input(("N", *shape[1:]))))
    values = np.random.default_rng(3).integers(-100, 100, weights)
    w = net.add("DequantizeLinear", [net.constant(values, "int8"), *net.meaning(0.02, 0)])
    inputs = [x, w]
    if kind != "MatMul":
        inputs.append(net.constant(np.zeros(3), "float32"))
    return net.model(net.real(net.quantised(net.add(kind, inputs, **options))))


def _of_codes() -> Iterator[onnx.ModelProto]:
    """Operators that take codes with their scales."""

    def network(kind: str, domain: str, shape: Sequence[int], build: Any, **options: Any) -> Any:
        net = Network()
        x = net.quantised(net.input(("N", *shape[1:])))
        inputs = build(net, x)
        return net.model(net.real(net.add(kind, inputs, domain, **options)))

    def weights(net: Network, shape: Sequence[int], count: int) -> list[str]:
        codes = net.constant(np.random.default_rng(4).integers(-100, 100, shape), "int8")
        if count == 1:
            return [codes, *net.meaning(0.02, 0)]
        scales = net.constant(np.linspace(0.01, 0.03, count), "float32")
        return [codes, scales, net.constant(np.zeros(count), "int8")]

    def convolution(net: Network, x: str, count: int = 3) -> list[str]:
        bias = net.constant(np.arange(3), "int32")
        return [x, *net.meaning(), *weights(net, (3, 2, 3, 3), count), *net.meaning(), bias]

    def product(net: Network, x: str, count: int = 3) -> list[str]:
        return [x, *net.meaning(), *weights(net, (6, 3), count), *net.meaning()]

    def gemm(net: Network, x: str, count: int = 3) -> list[str]:
        bias = net.constant(np.arange(3), "int32")
        return [x, *net.meaning(), *weights(net, (6, 3), count), bias, *net.meaning()]

    def binary(net: Network, x: str) -> list[str]:
        return [x, *net.meaning(), x, *net.meaning(), *net.meaning()]

    def unary(net: Network, x: str) -> list[str]:
        return [x, *net.meaning(), *net.meaning()]

    def joined(net: Network, x: str) -> list[str]:
        return [*net.meaning(), x, *net.meaning(), x, *net.meaning()]

    picture = (1, 2, 5, 4)
    yield network("QLinearConv", "", picture, convolution, pads=[1, 1, 1, 1])
    yield network("QLinearMatMul", "", (1, 6), product)
    yield network("QGemm", MICROSOFT, (1, 6), gemm)
    # with one scale
    yield network("QLinearConv", "", picture, functools.partial(convolution, count=1))
    yield network("QLinearMatMul", "", (1, 6), functools.partial(product, count=1))
    yield network("QGemm", MICROSOFT, (1, 6), functools.partial(gemm, count=1))
    yield network("QLinearAdd", MICROSOFT, picture, binary)
    yield network("QLinearMul", MICROSOFT, picture, binary)
    yield network("QLinearSigmoid", MICROSOFT, picture, unary)
    yield network("QLinearLeakyRelu", MICROSOFT, picture, unary, alpha=0.1)
    yield network("QLinearSoftmax", MICROSOFT, (1, 6), unary, axis=1, opset=13)
    yield network("QLinearGlobalAveragePool", MICROSOFT, picture, unary, channels_last=0)
    yield network("QLinearAveragePool", MICROSOFT, picture, unary, kernel_shape=[2, 2])
    yield network("QLinearConcat", MICROSOFT, picture, joined, axis=1)
    # sums, and what makes codes of them
    for kind, shape, own in (
        ("ConvInteger", picture, (3, 2, 3, 3)),
        ("MatMulInteger", (1, 6), (6, 3)),
    ):
        net = Network()
        x = net.quantised(net.input(("N", *shape[1:])))
        point = net.constant(_ZERO, "int8")
        sums = net.add(kind, [x, weights(net, own, 1)[0], point])
        real = net.add("Mul", [net.add("Cast", [sums], to=1), net.constant(0.01, "float32")])
        yield net.model(net.real(net.quantised(real)))


def _of_real_numbers() -> Iterator[onnx.ModelProto]:
    picture = (1, 2, 5, 4)
    yield weighted("Conv", picture, (3, 2, 3, 3), pads=[0, 1, 1, 0], strides=[2, 1])
    yield weighted("ConvTranspose", (1, 2, 3, 3), (2, 3, 2, 2), strides=[2, 2])
    yield weighted("Gemm", (1, 6), (6, 3))
    yield weighted("MatMul", (1, 4, 6), (6, 3))
    for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum"):
        yield between(kind, picture, None)
        yield between(kind, picture, np.full((2, 1, 1), 0.5, np.float32))
    for kind in FUNCTIONS:
        if kind != "Clip":
            yield between(kind, picture)
    yield between("PRelu", picture, np.full((2, 1, 1), 0.1, np.float32))
    yield between("Clip", picture, np.float32(0), np.float32(6))
    yield between("Pow", picture, np.float32(2))
    for kind in sorted(onnx_pooling(moves_codes=True) | onnx_pooling(moves_codes=False)):
        yield between(kind, picture, kernel_shape=[2, 3], strides=[1, 2], pads=[1, 1, 0, 1])
    for kind in ("GlobalAveragePool", "GlobalMaxPool"):
        yield between(kind, picture)
    for kind in ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"):
        yield between(kind, picture, np.array([2, 3]), keepdims=0)
    for kind in ("Softmax", "LogSoftmax"):
        yield between(kind, (1, 3, 5), axis=-1)
    small = np.ones(4, np.float32)
    yield between("LayerNormalization", picture, small, small, axis=-1)
    yield between("BatchNormalization", (1, 4, 3), small, small, small, small)
    yield between("InstanceNormalization", (1, 4, 3), small, small)
    yield from _moves(picture)


def _moves(picture: Sequence[int]) -> Iterator[onnx.ModelProto]:
    yield between("Reshape", picture, np.array([0, -1]))
    yield between("Flatten", picture, axis=1)
    yield between("Transpose", picture, perm=[0, 2, 3, 1])
    yield between("Squeeze", (1, 1, 5), np.array([1]))
    yield between("Unsqueeze", (1, 5), np.array([2]))
    yield between("Concat", picture, None, axis=1)
    yield between("Slice", picture, np.array([0, 1]), np.array([2, 4]), np.array([1, 2]))
    yield between("Gather", picture, np.array([1, 0]), axis=1)
    yield between(
        "Pad", picture, np.array([0, 0, 1, 1, 0, 0, 1, 2]), np.float32(0), mode="constant"
    )
    yield between("Tile", picture, np.array([1, 2, 1, 3]))
    yield between("Expand", (1, 1, 4), np.array([1, 3, 4]))
    scales = np.array([1, 1, 2, 2], np.float32)
    yield between("Resize", picture, np.zeros(0, np.float32), scales, mode="nearest")
    yield between("Resize", picture, np.zeros(0, np.float32), scales, mode="linear")
    yield between("DepthToSpace", (1, 8, 2, 3), blocksize=2)
    yield between("SpaceToDepth", (1, 2, 4, 6), blocksize=2)
    yield between("ArgMax", (1, 5, 3), axis=1)
    yield between("Where", picture, None, None)
    yield between("Einsum", (1, 3, 4), None, equation="bij,bij->bi")


def onnx_networks() -> list[onnx.ModelProto]:
    """One network at least of most operators that the front-end reads."""
    return [*_of_codes(), *_of_real_numbers()]


def onnx_cases() -> Iterator[onnx.ModelProto]:
    """ONNX's own cases of single operators, all inputs but the first as constants."""
    for case in conformance.cases():
        arrays = case.data[0][0]
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for item, array in list(zip(model.graph.input, arrays, strict=False))[1:]:
            if isinstance(array, np.ndarray):
                made = numpy_helper.from_array(np.ascontiguousarray(array), item.name)
                model.graph.initializer.append(made)
        if case.reason != conformance.TYPES and model.ByteSize() < _LARGEST_CASE:
            yield model

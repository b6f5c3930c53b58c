"""Networks of codes: QLinearConv and its like, com.microsoft's and the integer operators."""

from typing import Any

import numpy as np
import pytest
from onnx_checks import check, on_device, operators
from onnx_writer import MICROSOFT, OnnxWriter

RNG = np.random.default_rng(5)
SHAPE = (1, 6, 9, 8)
TYPES = pytest.mark.parametrize("dtype", ["int8", "uint8"])


def codes(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def point(value: int, dtype: str) -> int:
    """A zero point for int8, or the same one for uint8."""
    return value + (128 if dtype == "uint8" else 0)


class Codes(OnnxWriter):
    """A network whose only input are codes of scale 0.0613."""

    def __init__(self, dtype: str, shape: tuple[int, ...] = SHAPE, opset: int = 21) -> None:
        super().__init__(opset)
        self.dtype, self.shape = dtype, shape
        self.operators: list[str] = []
        self.x = self.input("x", shape, dtype)
        self.own = self.parts(0.0613, 7)

    def parts(self, scale: Any, zero_point: int) -> list[str]:
        """Scale and zero point of the network's type."""
        return self.scale(scale, point(zero_point, self.dtype), self.dtype)

    def kernel(self, *shape: int, scale: Any = 0.0031, zero_point: Any = 0) -> list[str]:
        """Codes, scale and zero point."""
        made = codes(*shape, dtype=self.dtype)
        points = np.broadcast_to(np.asarray(zero_point) + point(0, self.dtype), np.shape(scale))
        return [self.constant(made), *self.scale(np.float32(scale), points, self.dtype)]

    def check(self, y: str, dtype: str = "", count: int = 3) -> set[str]:
        """As onnxruntime; returns the operators that the device runs."""
        x = codes(count, *self.shape[1:], dtype=self.dtype)
        graph = check(self.to_bytes([y], dtype or self.dtype), x, most=0)
        self.operators = operators(graph)
        return on_device(graph)


@TYPES
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("zero_point", [0, 3])
def test_qlinear_conv(dtype: str, per_channel: bool, zero_point: int) -> None:
    net = Codes(dtype)
    scale = RNG.uniform(0.001, 0.004, 8) if per_channel else 0.0031
    weights = net.kernel(8, 6, 3, 3, scale=scale, zero_point=zero_point)
    bias = net.constant(RNG.integers(-3000, 3000, 8), "int32")
    inputs = [net.x, *net.own, *weights, *net.parts(0.1017, -3), bias]
    y = net.add("QLinearConv", inputs, pads=[1, 1, 1, 1], strides=[2, 1])
    assert "conv2d" in net.check(y)


@TYPES
@pytest.mark.parametrize("per_column", [False, True])
def test_qlinear_matmul(dtype: str, per_column: bool) -> None:
    net = Codes(dtype, (1, 5, 12))
    scale = RNG.uniform(0.001, 0.004, 7) if per_column else 0.0031
    weights = net.kernel(12, 7, scale=scale)
    y = net.add("QLinearMatMul", [net.x, *net.own, *weights, *net.parts(0.0517, -3)])
    assert "fully_connected" in net.check(y)


@TYPES
def test_qlinear_matmul_of_two_activations(dtype: str) -> None:
    net = Codes(dtype, (1, 5, 12))
    turned = net.add("Transpose", [net.x], perm=[0, 2, 1])
    y = net.add("QLinearMatMul", [net.x, *net.own, turned, *net.own, *net.parts(0.517, -3)])
    net.check(y)
    assert "matmul" in net.operators


@pytest.mark.parametrize("options", [{"transB": 1}, {"transB": 0}, {"transB": 1, "alpha": 0.5}])
@pytest.mark.parametrize("real", [False, True])
def test_qgemm(options: dict[str, Any], real: bool) -> None:
    net = Codes("int8", (1, 40))
    scale = RNG.uniform(0.001, 0.004, 7)
    weights = net.kernel(*((7, 40) if options["transB"] else (40, 7)), scale=scale)
    bias = net.constant(RNG.integers(-3000, 3000, 7), "int32")
    parts = [] if real else net.parts(0.0917, 9)
    inputs = [net.x, *net.own, *weights, bias, *parts]
    y = net.add("QGemm", inputs, domain=MICROSOFT, **options)
    device = net.check(y, "float32" if real else "")
    assert real or "fully_connected" in device


@TYPES
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_two_activations(dtype: str, operator: str) -> None:
    net = Codes(dtype)
    weights, other = net.kernel(6, 6, 1, 1), net.parts(0.0417, 20)
    b = net.add("QLinearConv", [net.x, *net.own, *weights, *other])
    inputs = [net.x, *net.own, b, *other, *net.parts(0.0713, 5)]
    device = net.check(net.add(operator, inputs, domain=MICROSOFT))
    assert operator == "QLinearMul" or "add" in device


def test_a_sum_that_lies_halfway() -> None:
    """The zero point is added before the rounding, which ties show where it is odd."""
    net = Codes("int8")
    double = net.parts(0.1226, 5)
    inputs = [net.x, *net.own, net.x, *net.own, *double]
    net.check(net.add("QLinearAdd", inputs, domain=MICROSOFT))


@TYPES
@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
    ],
)
def test_microsofts_of_one_activation(dtype: str, operator: str, options: dict[str, Any]) -> None:
    net = Codes(dtype)
    inputs = [net.x, *net.own, *net.parts(0.0511, 3)]
    device = net.check(net.add(operator, inputs, domain=MICROSOFT, **options))
    assert device & {"average_pool2d", "mean", "lookup"}


@TYPES
def test_softmax(dtype: str) -> None:
    net = Codes(dtype, (1, 30))
    inputs = [net.x, *net.own, *net.parts(1 / 256, -128)]
    y = net.add("QLinearSoftmax", inputs, domain=MICROSOFT, axis=-1, opset=21)
    net.check(y, count=50)


@TYPES
def test_concatenation(dtype: str) -> None:
    net = Codes(dtype)
    a = net.add("QLinearConv", [net.x, *net.own, *net.kernel(6, 6, 1, 1), *net.parts(0.04, 2)])
    inputs = [*net.parts(0.0711, 3), net.x, *net.own, a, *net.parts(0.04, 2)]
    net.check(net.add("QLinearConcat", inputs, domain=MICROSOFT, axis=1))
    assert "concatenation" in net.operators


def test_codes_that_only_move() -> None:
    net = Codes("uint8")
    y = net.add("MaxPool", [net.x], kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    y = net.add("Transpose", [y], perm=[0, 2, 1, 3])
    y = net.add("Concat", [y, y], axis=-1)
    net.check(net.add("Flatten", [y]))


@TYPES
@pytest.mark.parametrize("scaled", [False, True])
def test_conv_integer(dtype: str, scaled: bool) -> None:
    net = Codes(dtype)
    weights, *_, zero_point = net.kernel(4, 6, 3, 3, zero_point=2)
    y = net.add("ConvInteger", [net.x, weights, net.own[1], zero_point])
    if not scaled:
        y = net.add("Cast", [y], to=1)
        net.check(y, "float32")
        return
    y = net.add("Mul", [net.add("Cast", [y], to=1), net.constant(0.00037, "float32")])
    y = net.add(
        "Add",
        [y, net.constant(np.float32(0.00037 * np.arange(1000, 5000, 1000)).reshape(1, 4, 1, 1))],
    )
    y = net.add("QuantizeLinear", [net.add("Relu", [y]), *net.parts(0.0713, -128)])
    assert "conv2d" in net.check(y)


def test_matmul_integer() -> None:
    net = Codes("uint8", (1, 5, 12))
    weights, *_, zero_point = net.kernel(12, 7, zero_point=2)
    y = net.add("MatMulInteger", [net.x, weights, net.own[1], zero_point])
    y = net.add("Mul", [net.add("Cast", [y], to=1), net.constant(0.00037, "float32")])
    net.check(y, "float32")


def test_a_float_input_quantised_first() -> None:
    net = OnnxWriter(13)
    q = net.add("QuantizeLinear", [net.input("x", ("batch", *SHAPE[1:])), *net.scale(0.0613, 7)])
    weights = [net.constant(codes(4, 6, 3, 3)), *net.scale(0.0031, 0)]
    y = net.add("QLinearConv", [q, *net.scale(0.0613, 7), *weights, *net.scale(0.1, 0)])
    y = net.add("DequantizeLinear", [y, *net.scale(0.1, 0)])
    x = RNG.normal(0, 3, (3, *SHAPE[1:])).astype(np.float32)
    check(net.to_bytes([y]), x)


@pytest.mark.parametrize("shape", [SHAPE, (1, 30)])
def test_two_outputs_that_are_one_tensor(shape: tuple[int, ...]) -> None:
    net = Codes("int8", shape)
    y = net.add("QLinearSigmoid", [net.x, *net.own, *net.own], domain=MICROSOFT)
    same = net.add("Identity", [y])
    x = codes(2, *shape[1:])
    check(net.to_bytes([y, same, net.add("Identity", [same])], "int8"), x, most=0)

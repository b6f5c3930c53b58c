"""How near the ONNX rule is to onnxruntime, tensor by tensor, and machines where that is wrong."""

from typing import Any

import numpy as np
import pytest
from onnx_writer import MICROSOFT, OnnxWriter
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.onnx.reader import read_model
from slipstick.verify.onnx_saturation import saturating_nodes
from slipstick.verify.onnxruntime_reference import OnnxReference
from slipstick.verify.references import LayerRuntime

RNG = np.random.default_rng(19)
SHAPE = (1, 6, 5, 4)


def codes(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def qdq(operator: str, more: Any = (), scale: float = 0.1, **options: Any) -> bytes:
    """A float operator between codes; ``more`` makes its other inputs."""
    net = OnnxWriter()
    x = net.add("DequantizeLinear", [net.input("x", SHAPE, "int8"), *net.scale(0.0613, 7)])
    others = more(net) if more else []
    y = net.add(operator, [x, *others], **options)
    return net.to_bytes([net.add("QuantizeLinear", [y, *net.scale(scale, 3)])], "int8")


def bound(data: bytes) -> int | None:
    """Of the network's output."""
    reference = OnnxReference(data)
    (name,) = reference.outputs
    return reference.agreements[name].bound


def kernel(net: OnnxWriter) -> list[str]:
    return [net.weights(codes(8, 6, 3, 3), np.float32(0.003))]


def kernel_and_bias(net: OnnxWriter) -> list[str]:
    return [*kernel(net), net.constant(RNG.normal(0, 1, 8), "float32")]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (qdq("Relu"), 0),
        (qdq("MaxPool", kernel_shape=[2, 2]), 0),
        (qdq("Conv", kernel), 1),
        (qdq("Conv", kernel_and_bias), 1),
        # half a unit of the sums is half of 7.4 codes, and the sum's error is about one
        (qdq("Conv", kernel_and_bias, scale=0.003 * 0.0613 / 7.4), 6),
        (qdq("GlobalAveragePool"), 1),
        (qdq("Sigmoid"), 1),
        (qdq("Softmax"), 1),
    ],
)
def test_bounds_of_real_numbers(data: bytes, wanted: int) -> None:
    # of random weights the sums' errors are no round number
    made = bound(data)
    assert made is not None and abs(made - wanted) <= (1 if wanted > 1 else 0)
    graph = load_onnx_bytes(data)
    x = codes(20, *SHAPE[1:])
    # and they hold
    largest: dict[str, int] = {}

    def note(name: str, theirs: np.ndarray, ours: np.ndarray) -> None:
        largest[name] = int(np.abs(theirs.astype(np.int64) - ours).max())

    runtime = LayerRuntime(data, graph)
    runtime.differences({graph.inputs[0]: x}, note)
    for name, agreement in runtime.agreements.items():
        assert agreement.bound is None or largest[name] <= agreement.bound


def test_several_float_operators_are_promised_nothing() -> None:
    net = OnnxWriter()
    x = net.add("DequantizeLinear", [net.input("x", SHAPE, "int8"), *net.scale(0.0613, 7)])
    y = net.add("Sub", [net.add("Exp", [x]), net.add("Sigmoid", [x])])
    y = net.add("QuantizeLinear", [y, *net.scale(0.1, 3)])
    assert bound(net.to_bytes([y], "int8")) is None


def qlinear_conv(shape: tuple[int, ...], dtype: str = "int8", weights: str = "int8") -> bytes:
    net = OnnxWriter()
    zero = 128 if dtype == "uint8" else 0
    x = net.input("x", (1, shape[1], 3, 3), dtype)
    kernel = [net.constant(codes(*shape, dtype=weights)), *net.scale(0.003, 0, weights)]
    inputs = [x, *net.scale(0.06, zero, dtype), *kernel, *net.scale(0.5, zero, dtype)]
    return net.to_bytes([net.add("QLinearConv", inputs)], dtype)


def test_bounds_of_codes() -> None:
    assert bound(qlinear_conv((4, 6, 3, 3))) == 0
    # its sums may pass 2^24, which onnxruntime rounds to float32
    assert bound(qlinear_conv((4, 400, 3, 3))) == 1
    net = OnnxWriter()
    a, b = (net.input(name, (1, 9), "int8") for name in "ab")
    inputs = [a, *net.scale(0.03, 3), b, *net.scale(0.05, 3), *net.scale(0.06, 3)]
    y = net.add("QLinearAdd", inputs, domain=MICROSOFT)
    assert bound(net.to_bytes([y], "int8")) == 1


def test_products_that_an_x86_without_vnni_saturates() -> None:
    data = qlinear_conv((4, 6, 3, 3), "uint8", "int8")
    assert bound(data) is None
    assert [node.operator for node in saturating_nodes(read_model(data, "m"))] == ["QLinearConv"]
    for dtype in ("int8", "uint8"):
        same = read_model(qlinear_conv((4, 6, 3, 3), dtype, dtype), "m")
        assert not saturating_nodes(same)

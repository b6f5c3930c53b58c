"""Networks whose scales are computed with each input, as onnxruntime's dynamic quantiser writes."""

from pathlib import Path

import numpy as np
import pytest
from encoder_network import TOKENS, WIDTH, Encoder, quantised_dynamically
from onnx_checks import check, operators
from onnx_writer import OnnxWriter
from slipstick.errors import UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes

RNG = np.random.default_rng(10)


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    return RNG.normal(0, scale, shape).astype(np.float32)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("unsigned", [False, True])
def test_matrices(per_channel: bool, unsigned: bool, tmp_path: Path) -> None:
    net = OnnxWriter(17)
    y = net.add("MatMul", [net.input("x", ("N", 10, 16)), net.constant(numbers(16, 24))])
    y = net.add("Relu", [net.add("Add", [y, net.constant(numbers(24))])])
    y = net.add("MatMul", [y, net.constant(numbers(24, 8))])
    data = quantised_dynamically(
        net.to_bytes([y]), tmp_path, per_channel=per_channel, unsigned=unsigned
    )
    graph = check(data, numbers(4, 10, 16))
    assert operators(graph).count("dynamic_scale") == 2


def test_convolutions(tmp_path: Path) -> None:
    net = OnnxWriter(17)
    x = net.input("x", (1, 3, 9, 9))
    y = net.add("Conv", [x, net.constant(numbers(4, 3, 3, 3)), net.constant(numbers(4))])
    y = net.add("Relu", [y])
    y = net.add("Conv", [y, net.constant(numbers(4, 4, 3, 3))], pads=[1, 1, 1, 1], strides=[2, 2])
    y = net.add("Gemm", [net.add("Flatten", [y]), net.constant(numbers(64, 5))])
    data = quantised_dynamically(net.to_bytes([y]), tmp_path, unsigned=True)
    graph = check(data, numbers(4, 3, 9, 9))
    assert operators(graph).count("conv2d") == 2


def test_an_encoder(tmp_path: Path) -> None:
    data = quantised_dynamically(Encoder(6, fused=True).of_tokens(1), tmp_path)
    graph = check(data, numbers(4, TOKENS, WIDTH))
    assert {"dynamic_zero_point", "quantize_by", "matmul", "softmax"} <= set(operators(graph))


def test_large_sums_are_exact() -> None:
    """Beyond 2^24 float32 has not every whole number."""
    net = OnnxWriter(13)
    net.add("DynamicQuantizeLinear", [net.input("x", (1, 2000))], "codes")
    net.nodes[-1].output.extend(["scale", "zero"])
    weights = net.constant(RNG.integers(100, 128, (2000, 3)), "int8")
    y = net.add("MatMulInteger", ["codes", weights, "zero"])
    check(net.to_bytes([net.add("Cast", [y], to=1)]), np.abs(numbers(3, 2000)))


@pytest.mark.parametrize("size", [1, 4, "N"])
def test_one_scale_for_all_rows(size: int | str) -> None:
    """Where a file fixes the rows they are no batch, and have one scale, as in ONNX."""
    net = OnnxWriter(13)
    net.add("DynamicQuantizeLinear", [net.input("x", (size, 8))], "codes")
    net.nodes[-1].output.extend(["scale", "zero"])
    y = net.add("DequantizeLinear", ["codes", "scale", "zero"])
    fixed = isinstance(size, int) and size > 1
    graph = check(net.to_bytes([y]), numbers(3, *((4,) if fixed else ()), 8))
    assert graph.tensors["x"].shape == ((1, 4, 8) if fixed else (1, 8))


def test_a_scale_as_output_has_no_batch() -> None:
    net = OnnxWriter(13)
    net.add("DynamicQuantizeLinear", [net.input("x", ("N", 8))], "codes")
    net.nodes[-1].output.extend(["scale", "zero"])
    with pytest.raises(UnsupportedError, match=r"output 'scale' must have a batch"):
        load_onnx_bytes(net.to_bytes(["scale"]))

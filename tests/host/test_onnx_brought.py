"""ONNX files that people bring: one domain only, padded whole numbers, pools of uneven windows."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_checks import check, on_device
from onnx_writer import MICROSOFT, OnnxWriter
from slipstick.errors import ModelError
from slipstick.frontends.onnx import load_onnx_bytes

RNG = np.random.default_rng(29)


def without_standard_domain(data: bytes) -> bytes:
    """The file with com.microsoft's operators imported alone."""
    model = onnx.ModelProto.FromString(data)
    kept = [item for item in model.opset_import if item.domain == MICROSOFT]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return model.SerializeToString()


def test_a_file_of_another_domain_alone() -> None:
    net = OnnxWriter()
    a, b = (net.input(name, (1, 9, 4), "int8") for name in "ab")
    inputs = [a, *net.scale(0.031, 3), b, *net.scale(0.047, -5), *net.scale(0.0613, 7)]
    y = net.add("QLinearAdd", inputs, domain=MICROSOFT)
    y = net.add("QLinearSigmoid", [y, *inputs[6:], *net.scale(1 / 256, -128)], domain=MICROSOFT)
    codes = [RNG.integers(-128, 128, (3, 9, 4)).astype(np.int8) for _ in range(2)]
    check(without_standard_domain(net.to_bytes([y], "int8")), *codes)


def test_standard_operators_want_their_domain() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 9)), 0.05)
    data = without_standard_domain(net.to_bytes([net.add("Relu", [x])]))
    with pytest.raises(ModelError, match="must import a version of ONNX's operators, of which '?Q"):
        load_onnx_bytes(data)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_whole_numbers_are_padded(dtype: str, mode: str) -> None:
    """As of words, whose rows a Gather looks up."""
    net = OnnxWriter()
    words = net.input("words", (1, 6), dtype)
    more: list[Any] = [net.constant(3, dtype)] if mode == "constant" else []
    y = net.add("Pad", [words, net.constant([0, 1, 0, 2], "int64"), *more], mode=mode)
    table = net.weights(RNG.integers(-128, 128, (5, 8)).astype(np.int8), np.float32(0.0171))
    y = net.add("MatMul", [net.add("Gather", [table, y]), net.constant(np.eye(8), "float32")])
    check(net.to_bytes([net.pair(y, 0.0213)]), RNG.integers(0, 5, (3, 6)).astype(dtype))


def test_padded_whole_numbers_as_an_output() -> None:
    net = OnnxWriter()
    words = net.input("words", (1, 6), "int32")
    table = net.weights(RNG.integers(-128, 128, (5, 8)).astype(np.int8), np.float32(0.0171))
    rows = net.add("Gather", [table, words])
    pads = [net.constant([0, 1, 0, 2], "int64"), net.constant(-7, "int32")]
    padded = net.add("Pad", [words, *pads])
    data = net.to_bytes([net.pair(rows, 0.0171)])
    model = onnx.ModelProto.FromString(data)
    output = onnx.helper.make_tensor_value_info(padded, onnx.TensorProto.INT32, None)
    model.graph.output.append(output)
    check(model.SerializeToString(), RNG.integers(0, 5, (3, 6)).astype(np.int32))


def test_pads_of_real_numbers_need_a_code_still() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 6, 5, 4)), 0.05)
    pads = [net.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64"), net.constant(0.25, "float32")]
    y = net.add("Pad", [x, *pads])
    kernel = net.weights(RNG.integers(-9, 9, (4, 6, 3, 3)).astype(np.int8), np.float32(0.1013))
    graph = check(
        net.to_bytes([net.pair(net.add("Conv", [y, kernel]), 0.2917)]),
        RNG.normal(0, 2, (3, 6, 5, 4)).astype(np.float32),
    )
    assert "conv2d" in on_device(graph)

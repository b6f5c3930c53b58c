"""Small transformer encoders, quantised by onnxruntime, from end to end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_network import PICTURE, TOKENS, WIDTH, WORDS, Encoder, quantised
from onnx_checks import check, on_device, operators
from onnx_writer import OnnxWriter
from slipstick.errors import InputError, UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.session import InferenceSession
from slipstick.verify.onnxruntime_reference import OnnxReference
from slipstick.verify.verifier import Verifier
from slipstick_rtl.config import Configuration

RNG = np.random.default_rng(7)


def run(data: bytes, x: np.ndarray, folder: Path) -> None:
    """Runs from end to end: of the class scores at most one in a hundred is a code or more away."""
    path = folder / "network.onnx"
    path.write_bytes(data)
    with InferenceSession(str(path), device="model") as session:
        (made,) = session.run(None, {"x": x})
    (wanted,) = OnnxReference(path).run(x)
    assert made.shape == wanted.shape
    away = np.abs(made - wanted) > 1e-5
    assert away.mean() <= 0.01, away.sum()
    assert (made.argmax(axis=1) == wanted.argmax(axis=1)).mean() >= 0.95


@pytest.mark.parametrize("per_channel", [False, True])
def test_an_encoder_of_tokens(per_channel: bool, tmp_path: Path) -> None:
    net = Encoder(3, fused=True)
    x = RNG.normal(0, 1, (40, TOKENS, WIDTH)).astype(np.float32)
    data = quantised(net.of_tokens(), x[:20], tmp_path, per_channel=per_channel)
    graph = check(data, x[20:])
    assert operators(graph).count("matmul") == 4
    assert operators(graph).count("layer_normalization") == 4
    assert {"fully_connected", "lookup", "add"} <= on_device(graph)
    run(data, x[20:], tmp_path)


@pytest.mark.parametrize("options", [{}, {"uint8": True}])
def test_what_older_exporters_write(options: dict[str, Any], tmp_path: Path) -> None:
    from onnxruntime.quantization import QuantType

    given = {"activation_type": QuantType.QUInt8} if options else {}
    net = Encoder(4, fused=False, masked=True)
    x = RNG.normal(0, 1, (40, TOKENS, WIDTH)).astype(np.float32)
    data = quantised(net.of_tokens(1), x[:20], tmp_path, **given)
    graph = check(data, x[20:])
    assert {"where", "div", "matmul", "softmax"} <= set(operators(graph))
    assert {"fully_connected", "lookup"} <= on_device(graph)
    run(data, x[20:], tmp_path)


def test_a_vision_transformer(tmp_path: Path) -> None:
    net = Encoder(5, fused=True)
    x = RNG.normal(0, 1, (40, *PICTURE)).astype(np.float32)
    data = quantised(net.of_pictures(), x[:20], tmp_path)
    graph = check(data, x[20:])
    assert {"conv2d", "fully_connected", "lookup"} <= on_device(graph)
    assert graph.inputs == load_onnx_bytes(data).inputs
    run(data, x[20:], tmp_path)


def test_an_encoder_of_words(tmp_path: Path) -> None:
    """The numbers of words are int64 inputs, that a table is looked up by."""
    net = Encoder(6, fused=True)
    x = RNG.integers(0, WORDS, (40, TOKENS))
    data = quantised(net.of_words(), x[:20], tmp_path)
    graph = check(data, x[20:])
    assert graph.tensors["x"].dtype == "int64"
    run(data, x[20:], tmp_path)
    drawn = Verifier(tmp_path / "network.onnx", Configuration()).random_inputs(50, 0)["x"]
    assert drawn.min() == 0 and drawn.max() == WORDS - 1
    with InferenceSession(str(tmp_path / "network.onnx"), device="model") as session:
        message = f"places in an axis of {WORDS} must be within -{WORDS}..{WORDS - 1}, not 99"
        with pytest.raises(InputError, match=message):
            session.run(None, {"x": np.full((1, TOKENS), 99)})


@pytest.mark.parametrize("table", ["float", "codes", "coded"])
def test_tables_and_masks(table: str) -> None:
    net = OnnxWriter(17)
    words, mask = net.input("words", ("N", 7), "int64"), net.input("mask", ("N", 7), "int64")
    numbers = RNG.integers(-128, 127, (WORDS, 16)).astype(np.int8)
    if table == "codes":
        x = net.add("Gather", [net.constant(numbers), words])
        x = net.add("DequantizeLinear", [x, *net.scale(0.0117, 3)])
    elif table == "coded":
        x = net.add("Gather", [net.weights(numbers, np.float32(0.0117)), words])
    else:
        x = net.add("Gather", [net.constant(np.float32(0.01) * numbers), words])
    x = net.pair(x, 0.0113)
    turned = net.add("Transpose", [x], perm=[0, 2, 1])
    scores = net.pair(net.add("MatMul", [x, turned]), 0.3113)
    seen = net.add("Cast", [net.add("Unsqueeze", [mask, net.constant([1], "int64")])], to=1)
    hidden = net.add("Sub", [net.constant(1.0, "float32"), seen])
    hidden = net.add("Mul", [hidden, net.constant(-10000.0, "float32")])
    weights = net.add("Softmax", [net.add("Add", [scores, hidden])], axis=-1)
    y = net.pair(net.add("MatMul", [net.pair(weights, 1 / 256, -128), x]), 0.0513)
    seen_words = (RNG.random((60, 7)) < 0.5) | (np.arange(7) < 3)
    graph = check(net.to_bytes([y]), RNG.integers(0, WORDS, (60, 7)), seen_words.astype(np.int64))
    assert operators(graph)[0] == "gather"


def test_whole_numbers_are_no_real_ones() -> None:
    net = OnnxWriter(17)
    x = net.add("Div", [net.input("x", ("N", 4), "int64"), net.constant([2], "int64")])
    y = net.pair(net.add("Cast", [x], to=1), 0.1)
    with pytest.raises(UnsupportedError, match="input 0 'x' must be real numbers, not int64"):
        load_onnx_bytes(net.to_bytes([y]))

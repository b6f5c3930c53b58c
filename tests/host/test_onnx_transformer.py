"""Small transformer encoders, quantised by onnxruntime, from end to end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_network import PICTURE, TOKENS, WIDTH, Encoder, quantised
from onnx_checks import check, on_device, operators
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.onnx_reference import OnnxReference
from slipstick.session import InferenceSession

RNG = np.random.default_rng(7)


def run(data: bytes, x: np.ndarray, folder: Path) -> None:
    """From end to end: of the class scores at most one in a hundred is a code or more away."""
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

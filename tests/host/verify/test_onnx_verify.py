"""How far QDQ networks drift from onnxruntime, and it from itself, as ``verify`` says it."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx_writer import MICROSOFT, OnnxWriter
from slipstick.cli import app

RNG = np.random.default_rng(23)
CHANNELS = 48


def pooled(tmp_path: Path) -> Path:
    """A convolution and a mean of four codes of the same scale: a quarter of them are ties."""
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 6, 2, 2)), 0.0613)
    codes = RNG.integers(-90, 90, (CHANNELS, 6, 1, 1)).astype(np.int8)
    weights = net.weights(codes, np.float32(0.004))
    y = net.pair(net.add("Conv", [x, weights]), 0.1713)
    y = net.add("QuantizeLinear", [net.add("GlobalAveragePool", [y]), *net.scale(0.1713, 0)])
    path = tmp_path / "pooled.onnx"
    path.write_bytes(net.to_bytes([y], "int8"))
    return path


def coded(tmp_path: Path) -> Path:
    """Such a mean as an operator of codes."""
    net = OnnxWriter()
    x = net.input("x", (1, CHANNELS, 2, 2), "int8")
    inputs = [x, *net.scale(0.1713, 0), *net.scale(0.1713, 0)]
    path = tmp_path / "coded.onnx"
    y = net.add("QLinearGlobalAveragePool", inputs, domain=MICROSOFT)
    path.write_bytes(net.to_bytes([y], "int8"))
    return path


def verified(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    with pytest.raises(SystemExit) as ended:
        app(("verify", "--no-rtl", "--limit", "20", *options))
    assert not ended.value.code
    return capsys.readouterr().out


def test_drift_of_float_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pooled(tmp_path)
    result = json.loads(verified(capsys, str(path), "--json"))
    assert result["total_mismatches"] == 0
    found = result["onnxruntime"]
    outputs = 20 * CHANNELS
    assert found["outputs"]["elements"] == found["runtime_outputs"]["elements"] == outputs
    # ties of means; onnxruntime's fused session adds integers, as the rule does
    assert 0 < found["outputs"]["mismatches"] <= outputs / 4
    assert found["runtime_outputs"]["mismatches"] > 0
    assert found["optimised_outputs"]["mismatches"] == 0
    assert found["layers"]["mismatches"] > 0 and found["differing_layers"] >= 1
    assert found["beyond_bound"] == []
    bounds = {layer["operator"]: layer["bound"] for layer in result["layers"]}
    assert (bounds["conv2d"], bounds["mean"]) == (1, 1)
    shown = " ".join(verified(capsys, str(path)).split())
    number = f"{found['outputs']['mismatches']:,} of {outputs:,} outputs differ, by at most 1"
    assert f"from end to end: {number}" in shown
    assert "onnxruntime with its optimisations against itself without:" in shown
    assert "slipstick quantize --format qoperator" in shown


def test_codes_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = coded(tmp_path)
    found = json.loads(verified(capsys, str(path), "--json"))["onnxruntime"]
    for part in ("layers", "outputs", "runtime_outputs", "optimised_outputs"):
        assert found[part]["elements"] > 0 and found[part]["mismatches"] == 0
    assert "qoperator" not in verified(capsys, str(path))

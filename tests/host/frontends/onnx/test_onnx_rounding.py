"""ONNX's rule in float32's arithmetic: each sum, and each pair of codes, beside onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from onnx_writer import MICROSOFT, OnnxWriter
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.kernels import run_graph
from slipstick.kernels.onnx.scaling import factor_parts, round_float
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift, requantize

PAIRS = 1 << 16


@pytest.mark.parametrize("seed", range(3))
def test_sums_follow_float32(seed: int) -> None:
    """Below 2^24, where float32 holds the sum itself; and as the hardware's twin everywhere."""
    generator = np.random.default_rng(seed)
    factors = (2.0 ** generator.uniform(-20, 3, 50)).astype(np.float32)
    # where the product of ratios of small numbers lies all but halfway
    factors[25:] = (generator.integers(1, 400, 25) / 777).astype(np.float32)
    sums = generator.integers(-(1 << 24), 1 << 24, (2000, 50))
    halves = ((generator.integers(-300, 300, (2000, 50)) + 0.5) / factors).round()
    sums = np.where(np.abs(halves) < 1 << 24, halves, sums).astype(np.int64)
    mantissas, shifts = factor_parts(factors)
    wanted = np.rint(sums.astype(np.float32) * factors)
    np.testing.assert_array_equal(round_float(sums, mantissas, shifts), wanted)
    encoded = np.array([encode_shift(Rounding.FLOAT, 31 - int(shift)) for shift in shifts])
    wide = generator.integers(-(1 << 31), 1 << 31, sums.shape)
    np.testing.assert_array_equal(
        round_float(wide, mantissas, shifts),
        requantize(wide, 0, mantissas, encoded, Rounding.FLOAT),
    )


def differing_pairs(dtype: str, scales: np.ndarray, zeros: np.ndarray, short: bool) -> int:
    """Of all pairs of codes: how many sums are others than onnxruntime's, by one at most."""
    net = OnnxWriter()
    lowest = np.iinfo(dtype).min
    names = [net.input(name, (1, PAIRS), dtype) for name in "ab"]
    parts = [
        net.scale(scale, zero + lowest, dtype) for scale, zero in zip(scales, zeros, strict=True)
    ]
    if short:
        inputs = [names[0], *parts[0], names[1], *parts[1], *parts[2]]
        output = net.add("QLinearAdd", inputs, domain=MICROSOFT)
    else:
        sides = [
            net.add("DequantizeLinear", [name, *part])
            for name, part in zip(names, parts[:2], strict=True)
        ]
        output = net.add("QuantizeLinear", [net.add("Add", sides), *parts[2]])
    data = net.to_bytes([output], dtype)
    codes = np.arange(lowest, lowest + 256).astype(dtype)
    a, b = (side.reshape(1, -1) for side in np.meshgrid(codes, codes, indexing="ij"))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options)
    wanted = np.asarray(session.run(None, {"a": a, "b": b})[0]).astype(np.int64)
    graph = load_onnx_bytes(data)
    away = np.abs(run_graph(graph, [a, b])[graph.outputs[0]] - wanted)
    assert away.max() <= 1
    return int((away > 0).sum())


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("short", [True, False], ids=["QLinearAdd", "Add"])
def test_sums_of_activations(dtype: str, short: bool) -> None:
    generator = np.random.default_rng(7)
    differing = []
    for index in range(16):
        a, b = np.exp(generator.uniform(-7, -2, 2))
        b = a if index % 4 == 3 else b
        scales = np.array([a, b, generator.uniform(0.5, 1.5) * (a + b)], np.float32)
        differing.append(differing_pairs(dtype, scales, generator.integers(0, 256, 3), short))
    # at most one near tie in a million pairs, of what float32 rounds once more in between
    assert sum(differing) <= 2 and max(differing) <= 1, differing


@pytest.mark.parametrize("short", [True, False], ids=["QLinearAdd", "Add"])
def test_ties_of_powers_of_two(short: bool) -> None:
    """Float32 holds them exactly, and so do the tables."""
    scales = np.array([0.25, 0.125, 0.5], np.float32)
    assert differing_pairs("int8", scales, np.array([128, 100, 131]), short) == 0

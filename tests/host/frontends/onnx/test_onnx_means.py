"""Means of codes: the exact integer sum, one float32 factor, ties to even; whatever the machine."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx_checks import check, on_device
from onnx_writer import MICROSOFT, OnnxWriter
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.kernels import run_graph
from slipstick.verify.onnxruntime_reference import OnnxReference
from slipstick.verify.references import LayerRuntime

RNG = np.random.default_rng(11)
CHANNELS = 64

POOLS = {
    "ReduceMean": lambda net, x, _: net.add("ReduceMean", [x, net.constant([2, 3], "int64")]),
    "GlobalAveragePool": lambda net, x, _: net.add("GlobalAveragePool", [x]),
    "AveragePool": lambda net, x, window: net.add("AveragePool", [x], kernel_shape=window),
}


def mean_network(
    operator: str, window: tuple[int, int], scales: tuple[float, float], opset: int = 21
) -> bytes:
    """Codes of one scale, and the codes of their mean."""
    net = OnnxWriter(opset)
    x = net.input("x", (1, CHANNELS, *window), "int8")
    x = net.add("DequantizeLinear", [x, *net.scale(scales[0], 5)])
    y = POOLS[operator](net, x, list(window))
    return net.to_bytes([net.add("QuantizeLinear", [y, *net.scale(scales[1], -9)])], "int8")


def pictures(window: tuple[int, int], count: int = 40) -> np.ndarray:
    shape = (count, CHANNELS, *window)
    return np.clip(RNG.normal(5, 30, shape).round(), -128, 127).astype(np.int8)


def defined(x: np.ndarray, scales: tuple[float, float]) -> np.ndarray:
    """docs/reference/onnx.md's rule, written out."""
    sums = (x.astype(np.int64) - 5).sum(axis=(2, 3), keepdims=True)
    assert np.abs(sums).max() < 1 << 24
    own, other = map(np.float32, scales)
    factor = own / (other * np.float32(x.shape[2] * x.shape[3]))
    codes = np.rint(sums.astype(np.float32) * factor) - 9
    return np.clip(codes, -128, 127).astype(np.int8)


@pytest.mark.parametrize("operator", POOLS)
@pytest.mark.parametrize("scales", [(0.0613, 0.0613), (0.0613, 0.0311), (0.0613, 0.0921)])
@pytest.mark.parametrize("window", [(1, 2), (2, 2), (2, 3), (4, 4), (3, 5), (7, 7), (6, 6), (8, 8)])
def test_means_follow_the_definition(
    operator: str, scales: tuple[float, float], window: tuple[int, int]
) -> None:
    """On the host and on the device, and beside onnxruntime, by one code at most."""
    data, x = mean_network(operator, window, scales), pictures(window)
    graph = check(data, x)
    np.testing.assert_array_equal(run_graph(graph, [x])[graph.outputs[0]], defined(x, scales))
    assert {"mean", "average_pool2d"} & on_device(graph)


@pytest.mark.parametrize("scale", [0.0613, 0.25, 1 / 3])
@pytest.mark.parametrize("window", [(1, 2), (2, 2), (2, 3), (2, 5), (4, 4), (6, 6), (5, 8)])
def test_between_equal_scales_it_is_the_nearest_code(scale: float, window: tuple[int, int]) -> None:
    """Ties to even; onnxruntime's codes are others at ties only, where its sum's error decides."""
    data, x = mean_network("ReduceMean", window, (scale, scale)), pictures(window)
    graph = load_onnx_bytes(data)
    sums = (x.astype(np.int64) - 5).sum(axis=(2, 3), keepdims=True)
    taps = window[0] * window[1]
    below, rest = sums // taps, 2 * (sums % taps)
    nearest = below + ((rest > taps) | (rest == taps) & (below % 2 == 1))
    codes = run_graph(graph, [x])[graph.outputs[0]]
    away = codes != np.clip(nearest - 9, -128, 127)
    assert not away[rest != taps].any()
    # a power of two leaves the factor exact, and ties go to the even code
    assert taps & (taps - 1) or not away.any()

    def note(name: str, wanted: np.ndarray, actual: np.ndarray) -> None:
        if wanted.size == rest.size:
            assert not (wanted != actual).ravel()[rest.ravel() != taps].any(), name

    LayerRuntime(data, graph).differences({graph.inputs[0]: x}, note)
    assert (rest == taps).any()


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [2, 4], "pads": [1, 1, 0, 2], "count_include_pad": 1},
        {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0]},
    ],
)
def test_windows_of_equal_scales_run_on_the_device(opset: int, options: dict[str, Any]) -> None:
    """No version of onnxruntime's order of additions is looked at."""
    net = OnnxWriter(opset)
    x = net.pair(net.input("x", (1, 6, 9, 8)), 0.06, 7)
    y = net.pair(net.add("AveragePool", [x], **options), 0.06, 7)
    x = RNG.normal(0, 2, (3, 6, 9, 8)).astype(np.float32)
    assert "average_pool2d" in on_device(check(net.to_bytes([y]), x))


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "AveragePool"])
@pytest.mark.parametrize("window", [(1, 2), (2, 2), (2, 3), (3, 4), (7, 7), (8, 8)])
def test_it_is_what_onnxruntime_fuses_them_into(operator: str, window: tuple[int, int]) -> None:
    """Its optimised session makes operators of codes of them, and adds integers, too."""
    data, x = mean_network(operator, window, (0.0613, 0.0613)), pictures(window)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    wanted = np.concatenate([np.asarray(session.run(None, {"x": one[None]})[0]) for one in x])
    graph = load_onnx_bytes(data)
    np.testing.assert_array_equal(run_graph(graph, [x])[graph.outputs[0]], wanted)


@pytest.mark.parametrize("zero_point", [4, 5])
def test_windows_of_codes_differ_at_ties_only(zero_point: int) -> None:
    """QLinearAveragePool adds float32 numbers there, and an odd zero point before it rounds."""
    net = OnnxWriter()
    x = net.input("x", (1, 6, 8, 8), "int8")
    parts = net.scale(0.1713, zero_point)
    options: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    y = net.add("QLinearAveragePool", [x, *parts, *parts], domain=MICROSOFT, **options)
    data = net.to_bytes([y], "int8")
    codes = RNG.integers(-128, 128, (30, 6, 8, 8)).astype(np.int8)
    graph = load_onnx_bytes(data)
    ours = run_graph(graph, [codes])[graph.outputs[0]].astype(np.int64)
    (theirs,) = OnnxReference(data).run(codes)
    sums = codes.astype(np.int64).reshape(30, 6, 4, 2, 4, 2).sum(axis=(3, 5))
    assert np.abs(ours - theirs).max() == 1
    assert (sums[ours != theirs] % 4 == 2).all()

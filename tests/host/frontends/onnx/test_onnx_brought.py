"""ONNX files that people bring: one domain only, padded whole numbers, pools of uneven windows."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from encoder_network import quantised
from onnx_checks import check, on_device
from onnx_writer import MICROSOFT, OnnxWriter
from onnxruntime.quantization import QuantFormat
from slipstick.errors import ModelError, UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes

RNG = np.random.default_rng(29)


Sizes = tuple[int, int]


def window_places(size: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Each output's places of the input, the last one repeated, and which of them count."""
    starts = [index * size // outputs for index in range(outputs)]
    ends = [-(-(index + 1) * size // outputs) for index in range(outputs)]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    places = np.array(starts)[:, None] + np.arange(longest)
    return np.minimum(places, size - 1), places < np.array(ends)[:, None]


def adaptive_pool(net: OnnxWriter, x: str, sizes: Sizes, outputs: Sizes) -> str:
    """AdaptiveAvgPool2d as torch's exporter writes it, where the outputs divide no sizes."""
    down, across = (window_places(*pair) for pair in zip(sizes, outputs, strict=True))
    grid = np.broadcast_arrays(down[0][:, :, None, None], across[0][None, None])
    y = net.add("Transpose", [x], perm=[2, 3, 0, 1])
    y = net.add("GatherND", [y, net.constant(np.stack(grid, -1), "int64")])
    y = net.add("Transpose", [y], perm=[4, 5, 0, 1, 2, 3])
    zero = net.constant(0.0, "float32")
    for mask in (~down[1][:, :, None, None], ~across[1]):
        if mask.any():
            y = net.add("Where", [net.constant(mask), zero, y])
    total = ""
    for row in range(down[0].shape[1]):
        rows = net.add("Gather", [y, net.constant(row, "int64")], axis=3)
        for column in range(across[0].shape[1]):
            one = net.add("Gather", [rows, net.constant(column, "int64")], axis=4)
            total = net.add("Add", [total, one]) if total else one
    counts = down[1].sum(axis=1)[:, None] * across[1].sum(axis=1)
    return net.add("Div", [total, net.constant(counts, "float32")])


@pytest.mark.parametrize("form", list(QuantFormat))
@pytest.mark.parametrize(
    ("sizes", "outputs"), [((5, 7), (3, 2)), ((2, 2), (7, 7)), ((8, 8), (3, 3)), ((4, 3), (3, 3))]
)
def test_adaptive_pools_of_uneven_windows(
    sizes: Sizes, outputs: Sizes, form: QuantFormat, tmp_path: Path
) -> None:
    net = OnnxWriter(20)
    x = net.input("x", (1, 3, *sizes))
    kernel, matrix = (
        net.constant(RNG.normal(0, 0.2, shape), "float32")
        for shape in ((8, 3, 3, 3), (5, 8 * outputs[0] * outputs[1]))
    )
    y = net.add("Relu", [net.add("Conv", [x, kernel], pads=[1, 1, 1, 1])])
    y = adaptive_pool(net, y, sizes, outputs)
    y = net.add("Reshape", [y, net.constant([1, -1], "int64")])
    y = net.add("Gemm", [y, matrix], transB=1)
    images = RNG.normal(0, 1, (12, 3, *sizes)).astype(np.float32)
    data = quantised(net.to_bytes([y], shape=(1, 5)), images, tmp_path, quant_format=form)
    # the whole of windows is summed in steps of codes: sums between like scales tie at times
    graph = check(data, images, most=0.02)
    assert {"conv2d", "fully_connected"} <= on_device(graph)


def test_places_of_each_sample() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 4, 5, 3)), 0.05)
    places = net.constant([[[0, 4], [-1, 2], [3, -5]]], "int64")
    y = net.add("GatherND", [x, places], batch_dims=1)
    check(net.to_bytes([net.pair(y, 0.0613)]), RNG.normal(0, 2, (3, 4, 5, 3)).astype(np.float32))


def test_a_single_place_of_each_sample() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 4, 5)), 0.05)
    y = net.add("GatherND", [x, net.constant([[-1, 2]], "int64")], batch_dims=1)
    check(net.to_bytes([net.pair(y, 0.0613)]), RNG.normal(0, 2, (3, 4, 5)).astype(np.float32))


def test_a_shape_of_too_many_axes_is_refused() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 4, 5)), 0.05)
    y = net.add("Expand", [x, net.constant([1] * 62 + [4, 5], "int64")])
    with pytest.raises(UnsupportedError, match="the shape must have at most 8 axes, not 64"):
        load_onnx_bytes(net.to_bytes([net.pair(y, 0.05)]))


def test_places_beyond_a_tensor_are_refused() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 4, 5)), 0.05)
    y = net.add("GatherND", [x, net.constant([[[0, 5]]], "int64")], batch_dims=1)
    with pytest.raises(ModelError, match=r"indices must be within the sizes \(4, 5\)"):
        load_onnx_bytes(net.to_bytes([net.pair(y, 0.05)]))


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

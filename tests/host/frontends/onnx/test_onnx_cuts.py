"""ONNX operators that cut, enlarge and search, as onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx_checks import check, on_device
from onnx_writer import OnnxWriter

RNG = np.random.default_rng(6)
SHAPE = (1, 8, 6, 10)


def after_a_layer(opset: int = 21) -> tuple[OnnxWriter, str]:
    """A network whose first layer the device runs, and its result of 16 channels."""
    net = OnnxWriter(opset)
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    kernel = net.weights(RNG.integers(-99, 99, (16, 8, 1, 1)).astype(np.int8), np.float32(0.004))
    return net, net.pair(net.add("Conv", [x, kernel]), 0.1, 4)


def run(net: OnnxWriter, y: str, dtype: str = "float32") -> set[str]:
    x = RNG.normal(0, 2, (3, *SHAPE[1:])).astype(np.float32)
    return on_device(check(net.to_bytes([y], dtype), x))


@pytest.mark.parametrize(
    "numbers",
    [([1, 2], [5, 9], [2, 3], [1, 2]), ([8], [16], [1], [1]), ([-1], [-7], [3], [-2])],
)
def test_slice(numbers: tuple[list[int], ...]) -> None:
    net, x = after_a_layer()
    y = net.add("Slice", [x, *(net.constant(item, "int64") for item in numbers)])
    assert "slice" in run(net, net.pair(y, 0.1, 4))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_split(opset: int) -> None:
    net, x = after_a_layer(opset)
    names = ["left", "right"]
    more = [net.constant([10, 6], "int64")] if opset > 11 else []
    options: dict[str, Any] = {} if opset > 11 else {"split": [10, 6]}
    net.add("Split", [x, *more], "left", axis=1, **options)
    net.nodes[-1].output.append("right")
    left, right = (net.pair(name, 0.1, 4) for name in names)
    run(net, net.add("Concat", [right, left], axis=1))


@pytest.mark.parametrize("indices", [3, [1, 3, 5], [-1]])
def test_gather(indices: Any) -> None:
    net, x = after_a_layer()
    y = net.add("Gather", [x, net.constant(indices, "int64")], axis=2)
    run(net, net.pair(y, 0.1, 4))


@pytest.mark.parametrize("operator", ["DepthToSpace", "SpaceToDepth"])
def test_blocks(operator: str) -> None:
    net, x = after_a_layer()
    run(net, net.pair(net.add(operator, [x], blocksize=2), 0.1, 4))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"coordinate_transformation_mode": "align_corners", "nearest_mode": "round_prefer_ceil"},
    ],
)
def test_resize(options: dict[str, str]) -> None:
    net, x = after_a_layer()
    empty = net.constant([], "float32")
    scales = net.constant([1, 1, 2, 3], "float32")
    device = run(net, net.pair(net.add("Resize", [x, empty, scales], **options), 0.1, 4))
    assert options.get("coordinate_transformation_mode") == "align_corners" or (
        "resize_nearest" in device
    )


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin", "GlobalMaxPool"])
def test_extremes(operator: str) -> None:
    net, x = after_a_layer()
    more = [] if operator == "GlobalMaxPool" else [net.constant([1], "int64")]
    run(net, net.pair(net.add(operator, [x, *more]), 0.1, 4))


@pytest.mark.parametrize("keep", [0, 1])
def test_arg_max(keep: int) -> None:
    net, x = after_a_layer()
    run(net, net.add("ArgMax", [x], axis=1, keepdims=keep), "int64")


def test_sum_of_three() -> None:
    net, x = after_a_layer()
    halves = [net.pair(net.add("Relu", [x]), 0.0517, -128), net.pair(x, 0.0913, 4)]
    run(net, net.pair(net.add("Sum", [x, *halves]), 0.2113))

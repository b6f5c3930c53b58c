"""Networks that have no batch, or mix it: the graph has one of 1 in front of ONNX's axes."""

from typing import Any

import numpy as np
import pytest
from onnx_checks import check, on_device, operators
from onnx_writer import OnnxWriter
from slipstick.compiler import compile_graph
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.session import InferenceSession
from slipstick_rtl.config import Configuration

RNG = np.random.default_rng(11)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(np.float32)


def codes(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 127, shape, np.int8, endpoint=True)


def residual() -> tuple[OnnxWriter, str]:
    """Convolutions with a shortcut over a picture of a fixed batch of 1."""
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 6, 9, 8)), 0.05, 3)
    y = x
    for _ in range(2):
        kernel = net.weights(codes(6, 6, 3, 3), np.float32(0.002))
        y = net.pair(net.add("Relu", [net.add("Conv", [y, kernel], pads=[1] * 4)]), 0.0317, -128)
    y = net.pair(net.add("Add", [x, y]), 0.0523)
    y = net.pair(net.add("GlobalAveragePool", [y]), 0.0117, 5)
    return net, y


@pytest.mark.parametrize(
    ("operator", "list_of"), [("Reshape", [6]), ("Squeeze", [0, 2, 3]), ("Reshape", [2, 3])]
)
def test_a_batch_that_is_dropped(operator: str, list_of: list[int]) -> None:
    """Convolutions stay on the device, without transpositions between them."""
    net, y = residual()
    y = net.add(operator, [y, net.constant(list_of, "int64")])
    y = net.add("Softmax", [y], axis=0)
    graph = check(net.to_bytes([net.pair(y, 1 / 256, -128)]), numbers(3, 6, 9, 8))
    assert graph.tensors["x"].shape == (1, 6, 9, 8)
    assert {"conv2d", "add", "mean"} <= on_device(graph)
    moves = [
        layer
        for layer in compile_graph(graph, Configuration()).layers
        if layer.operator == "transpose"
    ]
    assert len(moves) == 1


def test_time_in_front() -> None:
    """Frames x features, as of sound: transposed, cut, joined and compared."""
    net = OnnxWriter()
    x = net.pair(net.input("x", (30, 8)), 0.05)
    y = net.add("Unsqueeze", [net.add("Transpose", [x]), net.constant([0], "int64")])
    y = net.add("Conv", [y, net.weights(codes(5, 8, 3), np.float32(0.003))], strides=[2])
    y = net.add("Squeeze", [net.pair(y, 0.1), net.constant([0], "int64")])
    first = net.add("Slice", [y, *(net.constant([item], "int64") for item in (0, 2, 0))])
    y = net.pair(net.add("Concat", [y, first], axis=0), 0.1)
    y = net.pair(net.add("MatMul", [y, net.weights(codes(14, 6), np.float32(0.004))]), 0.2)
    y = net.add("ArgMax", [y], axis=0, keepdims=0)
    graph = check(net.to_bytes([y], "int64"), numbers(3, 30, 8))
    assert {"conv2d", "fully_connected"} <= on_device(graph)
    assert "arg_max" in operators(graph)


@pytest.mark.parametrize(
    "shapes", [((5, 4), (4, 6)), ((4,), (4, 6)), ((2, 5, 4), (4,)), ((4,), (4,))]
)
def test_products_of_inputs(shapes: tuple[Any, Any]) -> None:
    net = OnnxWriter()
    a, b = (net.pair(net.input(name, s), 0.05) for name, s in zip("ab", shapes, strict=True))
    y = net.pair(net.add("MatMul", [a, b]), 0.0917)
    check(net.to_bytes([y]), *(numbers(3, *shape) for shape in shapes))


@pytest.mark.parametrize("options", [{"transA": 1}, {"transB": 1, "alpha": 0.5, "beta": 2.0}])
def test_gemm_of_inputs(options: dict[str, Any]) -> None:
    net = OnnxWriter()
    shapes = ((5, 4), (5, 6), (4, 6)) if "transA" in options else ((5, 4), (6, 4), (5, 1))
    names = [net.pair(net.input(n, s), 0.05) for n, s in zip("abc", shapes, strict=True)]
    y = net.pair(net.add("Gemm", names, **options), 0.0917)
    check(net.to_bytes([y]), *(numbers(3, *shape) for shape in shapes))


@pytest.mark.parametrize(
    ("operator", "more", "options"),
    [
        ("ReduceMean", [[0]], {}),
        ("ReduceMax", [[0]], {"keepdims": 0}),
        ("Gather", [[3, 0, 1]], {"axis": 0}),
        ("Tile", [[2, 1]], {}),
        ("Expand", [[3, 4, 6]], {}),
        ("Flatten", [], {"axis": 0}),
        ("LayerNormalization", [np.float32(np.ones((4, 6)))], {"axis": 0}),
    ],
)
def test_axis_0(operator: str, more: list[Any], options: dict[str, Any]) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (4, 6)), 0.05)
    constants = [net.constant(np.asarray(item)) for item in more]
    y = net.pair(net.add(operator, [x, *constants], **options), 0.0371)
    check(net.to_bytes([y]), numbers(3, 4, 6))


def test_numbers_of_lower_rank() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (4, 6)), 0.05)
    y = net.pair(net.add("Mul", [x, net.pair(net.input("y", (6,)), 0.03)]), 0.0371)
    check(
        net.to_bytes([net.add("Add", [y, net.input("z", ())])]),
        *map(lambda shape: numbers(3, *shape), ((4, 6), (6,), ())),
    )


def test_a_session(tmp_path: Any) -> None:
    net, y = residual()
    path = tmp_path / "net.onnx"
    path.write_bytes(net.to_bytes([net.add("Reshape", [y, net.constant([6], "int64")])]))
    x = numbers(1, 6, 9, 8)
    with InferenceSession(str(path), device="model") as session:
        (one,) = session.run(None, {"x": x})
        (two,) = session.run(None, {"x": np.concatenate([x, x])})
    assert one.shape == (1, 6) and two.shape == (2, 6)
    np.testing.assert_array_equal(two[1:], one)


def test_batches_are_preferred() -> None:
    net = OnnxWriter()
    y = net.pair(net.add("Relu", [net.pair(net.input("x", (4, 6)), 0.05)]), 0.05)
    assert load_onnx_bytes(net.to_bytes([y])).tensors["x"].shape == (1, 6)

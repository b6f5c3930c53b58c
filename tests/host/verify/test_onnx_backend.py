"""ONNX's own interface for backends, and its conformance cases through it."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_writer import OnnxWriter
from slipstick import backend
from slipstick.errors import DeviceError, InputError, ModelError, UnsupportedError
from slipstick.verify import onnx_conformance as conformance
from slipstick.verify.onnx_conformance_table import UNSUPPORTED

RNG = np.random.default_rng(8)


@pytest.fixture(scope="module")
def report() -> conformance.Report:
    return conformance.report()


def test_conformance(report: conformance.Report) -> None:
    """Each case of an operator that is read passes, or is listed and does not."""
    print("\n" + "\n".join(report.lines()))
    assert not report.failed
    assert not report.stale
    assert len(report.passed) >= 578


def test_every_listed_case_is_there(report: conformance.Report) -> None:
    listed = [name for names in UNSUPPORTED.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert sorted(listed) == sorted(name for names in report.listed.values() for name in names)


def model(net: OnnxWriter, y: str, dtype: str = "float32") -> onnx.ModelProto:
    return onnx.ModelProto.FromString(net.to_bytes([y], dtype))


def convolution() -> onnx.ModelProto:
    """x and weights -> codes -> Conv."""
    net = OnnxWriter()
    x = net.pair(net.input("x", (2, 4, 6, 6)), 0.05)
    weights = net.pair(net.input("w", (3, 4, 3, 3)), 0.01)
    return model(net, net.pair(net.add("Conv", [x, weights]), 0.1))


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(np.float32)


def test_weights_may_be_inputs() -> None:
    network = backend.prepare(convolution())
    x, weights = numbers(2, 4, 6, 6), numbers(3, 4, 3, 3)
    (first,) = network.run([x, weights])
    assert network.constants == {"w"}
    assert first.shape == (2, 3, 4, 4)
    np.testing.assert_array_equal(network.run([x, weights])[0], first)
    (other,) = network.run({"x": x, "w": np.zeros_like(weights)})
    assert not other.any() and first.any()
    np.testing.assert_array_equal(backend.run_model(convolution(), [x, weights])[0], first)
    network.close()
    np.testing.assert_array_equal(network.run([x, weights])[0], first)
    (three,) = network.run([np.concatenate([x, x[:1]]), weights])
    np.testing.assert_array_equal(three[2:], first[:1])


def test_the_device_runs_what_it_can() -> None:
    x, weights = numbers(2, 4, 6, 6), numbers(3, 4, 3, 3)
    (wanted,) = backend.run_model(convolution(), [x, weights])
    (made,) = backend.run_model(convolution(), [x, weights], device="slipstick:sim:sim-small")
    np.testing.assert_array_equal(made, wanted)


def test_networks_without_a_batch() -> None:
    """Rows that are added up are no batch; a scalar has none either."""
    net = OnnxWriter()
    x = net.pair(net.input("x", (5, 8)), 0.05)
    y = net.pair(net.add("MatMul", [x, net.pair(net.input("y", (8, 3)), 0.05)]), 0.2)
    y = net.add("Mul", [net.add("ReduceMax", [y, net.constant([0], "int64")]), net.input("z", ())])
    a, b = numbers(5, 8), numbers(8, 3)
    (made,) = backend.run_model(model(net, y), [a, b, np.float32(2)])
    exact = (a @ b).max(axis=0, keepdims=True) * 2
    assert made.shape == exact.shape
    np.testing.assert_allclose(made, exact, atol=0.8)


@pytest.mark.parametrize(
    ("operator", "options", "shape"),
    [
        ("Reshape", [1, -1], (1, 24)),
        ("Unsqueeze", [0], (1, 4, 6)),
        ("Slice", [0, 2, 0], (2, 6)),
        ("Flatten", 0, (1, 24)),
    ],
)
def test_what_mixes_a_batch_is_no_batch(operator: str, options: Any, shape: Any) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (4, 6)), 0.05)
    if operator == "Flatten":
        y = net.add("Flatten", [x], axis=options)
    elif operator == "Slice":
        y = net.add("Slice", [x, *(net.constant([item], "int64") for item in options)])
    else:
        y = net.add(operator, [x, net.constant(options, "int64")])
    x = numbers(4, 6)
    (made,) = backend.run_model(model(net, y), [x])
    assert made.shape == shape
    codes = np.clip(np.rint(x / np.float32(0.05)), -128, 127) * np.float32(0.05)
    np.testing.assert_array_equal(made.ravel(), codes.ravel()[: made.size])


def test_nodes() -> None:
    x = numbers(3, 4)
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.25)
    (made,) = backend.run_node(node, [x])
    np.testing.assert_array_equal(made, np.where(x < 0, x * np.float32(0.25), x))
    (made,) = backend.run_node(node, {"x": x}, outputs_info=[(np.dtype(np.float32), (3, 4))])
    assert made.shape == (3, 4)
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])
    (made,) = backend.run_node(node, [x, np.float32(0.1), np.uint8(100)])
    assert made.dtype == np.uint8
    with pytest.raises(InputError, match="inputs of QuantizeLinear must be 3 arrays, not 1"):
        backend.run_node(node, [x])


def test_devices() -> None:
    for name in ("CPU", "slipstick:model", "slipstick:sim:1x8x8", "slipstick:serial:/dev/ttyUSB0"):
        assert backend.supports_device(name)
    for name in ("CUDA", "model", "slipstick:", "slipstick:gpu"):
        assert not backend.supports_device(name)
        with pytest.raises(DeviceError, match="be CPU, or slipstick: and one of model, sim"):
            backend.prepare(convolution(), name)


def test_refusals() -> None:
    net = OnnxWriter()
    y = net.add("NonZero", [net.input("x", (3, 4))])
    assert not backend.is_compatible(model(net, y))
    with pytest.raises(UnsupportedError, match="must be one of the operators"):
        backend.prepare(model(net, y))
    assert backend.is_compatible(convolution())
    half = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, (3,))
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "half", [half], [half])
    graph.output[0].name = "y"
    with pytest.raises(UnsupportedError, match="half: an input must be float32, .*, not float16"):
        backend.prepare(helper.make_model(graph))
    empty = onnx.ModelProto()
    with pytest.raises(ModelError):
        backend.prepare(empty)


def test_inputs() -> None:
    network = backend.prepare(convolution())
    x, weights = numbers(2, 4, 6, 6), numbers(3, 4, 3, 3)
    with pytest.raises(InputError, match="inputs must be arrays for x, w"):
        network.run([x])
    with pytest.raises(InputError, match="inputs must be x, w, not x, v"):
        network.run({"x": x, "v": weights})
    with pytest.raises(InputError, match="input 'x' must have the shape"):
        network.run([x[:, :3], weights])
    with pytest.raises((ModelError, UnsupportedError), match="groups must divide evenly"):
        network.run([x, weights[:, :3]])

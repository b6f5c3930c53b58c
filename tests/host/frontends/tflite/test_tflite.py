"""The TFLite front-end: what it makes of networks, and the sentences with which it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
import tflm_cases as cases
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends import load
from slipstick.frontends.tflite import load_tflite, load_tflite_bytes, tensor_indices
from slipstick.frontends.tflite.operators import readers
from slipstick.graph import Graph
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter

SHAPE = (1, 6, 6, 2)


def convolution(operator: ops.Operator | None = None, **changes: dict[str, Any]) -> bytes:
    """x -> conv -> y, with changed arguments of the tensors x, w, b or y."""
    ones = np.ones((4, 3, 3, 2), np.int8)
    tensors: dict[str, dict[str, Any]] = {
        "x": {"shape": SHAPE, "scale": 0.5},
        "w": {"shape": ones.shape, "scale": np.ones(4), "axis": 0, "data": ones},
        "b": {"shape": (4,), "dtype": "int32", "scale": 0.5, "data": np.arange(4)},
        "y": {"shape": (1, 6, 6, 4), "scale": 4.0, "zero_point": -128},
    }
    writer = TfliteWriter()
    for name, arguments in tensors.items():
        writer.tensor(name, **arguments | changes.get(name, {}))
    writer.add(operator or ops.Conv2D(), ["x", "w", "b"], ["y"])
    return writer.to_bytes(["x"], ["y"])


def unary(operator: ops.Operator, x: dict[str, Any], y: dict[str, Any]) -> bytes:
    """x -> y with arguments of the tensors; the shape is given unless it is changed."""
    writer = TfliteWriter()
    for name, arguments in (("x", x), ("y", y)):
        every: dict[str, Any] = {"shape": SHAPE} | arguments
        writer.tensor(name, **every)
    writer.add(operator, ["x"], ["y"])
    return writer.to_bytes(["x"], ["y"])


def test_convolution() -> None:
    operator = ops.Conv2D(stride=(2, 1), dilation=(2, 1), activation="RELU6")
    graph = load_tflite_bytes(convolution(operator, y={"shape": (1, 3, 6, 4)}), "tiny")
    assert graph.name == "tiny"
    assert graph.semantics == "tflm"
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    (node,) = graph.nodes
    assert (node.name, node.operator) == ("conv2d_0", "conv2d")
    assert (node.inputs, node.outputs) == (("x", "w", "b"), ("y",))
    assert node.attributes == {
        "stride": (2, 1),
        "dilation": (2, 1),
        # 5 rows by 2 over 6: three more than there are, the odd one at the end
        "padding": (1, 2, 1, 1),
        "groups": 1,
        "activation": "relu6",
    }
    weights = graph.tensors["w"]
    assert weights.data is not None and weights.quantization is not None
    assert weights.data.dtype == np.int8 and not weights.data.flags.writeable
    assert (weights.shape, weights.quantization.axis) == ((4, 3, 3, 2), 0)
    np.testing.assert_array_equal(weights.quantization.scale, np.ones(4))
    assert graph.tensors["y"].quantization is not None
    assert graph.tensors["y"].quantization.zero_point.tolist() == [-128]


def test_repeated_and_missing_names_become_unique() -> None:
    data = convolution(ops.Conv2D()).replace(b"\x01\x00\x00\x00y", b"\x01\x00\x00\x00x")
    graph = load_tflite_bytes(data)
    assert (graph.inputs, graph.outputs) == (("x",), ("x_3",))
    assert tensor_indices(data) == {"x": 0, "w": 1, "b": 2, "x_3": 3}
    data = data.replace(b"\x01\x00\x00\x00w", b"\x00\x00\x00\x00w")
    assert load_tflite_bytes(data).nodes[0].inputs == ("x", "tensor_1", "b")


def test_free_batch_is_one() -> None:
    data = convolution(x={"signature": (-1, 6, 6, 2)})
    assert load_tflite_bytes(data).tensors["x"].shape == SHAPE


def test_other_operators() -> None:
    rng = np.random.default_rng(0)
    depthwise = load_tflite_bytes(cases.convolution(rng, depthwise=True)[0]).nodes[0]
    assert depthwise.operator == "depthwise_conv2d"
    assert depthwise.attributes["multiplier"] >= 1
    pool = load_tflite_bytes(cases.pooling(rng, ops.MaxPool2D)[0]).nodes[0]
    assert (pool.name, set(pool.attributes)) == (
        "max_pool2d_0",
        {"window", "stride", "padding", "activation"},
    )
    axes = np.array([-2, 1], np.int32)
    ones = (SHAPE, 1.0, 0), ((1, 2), 1.0, 0)
    mean = load_tflite_bytes(cases.single_operator(ops.Mean(), *ones, axes)).nodes[0]
    assert (mean.inputs, mean.attributes) == (("x",), {"axes": (1, 2), "keep_dimensions": False})
    border = np.array([[0, 0], [1, 2], [0, 0], [0, 1]])
    tensors = (SHAPE, 1.0, 7), ((1, 9, 6, 3), 1.0, 7)
    pad = load_tflite_bytes(cases.single_operator(ops.Pad(), *tensors, border)).nodes[0]
    assert pad.attributes == {"padding": ((0, 0), (1, 2), (0, 0), (0, 1)), "value": 7}


INT8 = {"scale": 1.0}
CASES: list[tuple[bytes, type[SlipstickError], str]] = [
    (
        convolution(ops.HardSwish()),
        ModelError,
        r"HARD_SWISH \(operator 0, output 'y'\): inputs must be 1, not 3",
    ),
    (
        convolution(x={"dtype": "float32", "scale": None}),
        UnsupportedError,
        "input 0 'x' must be int8, and is float32: the converter left this part of the network in",
    ),
    (
        convolution(y={"dtype": "uint8", "zero_point": 0}),
        UnsupportedError,
        "output 'y' must be int8, and is uint8",
    ),
    (
        convolution(x={"dtype": "int16"}),
        UnsupportedError,
        "tensor 0 'x': type must be one of .*, not int16: convert with OpsSet.TFLITE",
    ),
    (convolution(x={"scale": None}), ModelError, "input 0 'x' must have a scale and a zero point"),
    (
        convolution(x={"scale": np.ones(2), "axis": 3}),
        UnsupportedError,
        "input 0 'x' must have 1 scale, not 2",
    ),
    (
        convolution(x={"shape": (2, 6, 6, 2)}),
        UnsupportedError,
        r"tensor 0 'x': the batch \(dimension 0\) must be 1, not shape \(2, 6, 6, 2\)",
    ),
    (
        convolution(x={"shape": (1, 1, 6, 2), "signature": (1, -1, 6, 2)}),
        UnsupportedError,
        "'x': sizes must be fixed, and axis 1 is free: convert the network with fixed sizes",
    ),
    (
        convolution(x={"shape": (1, -1, 6, 2)}),
        UnsupportedError,
        r"'x': shape must be fixed, not \(1, -1, 6, 2\)",
    ),
    (
        convolution(x={"shape": (1, 1 << 20, 1 << 20, 2)}),
        ModelError,
        "'x': shape must have sizes of at least 1 and at most 33554432 elements, not",
    ),
    (convolution(x={"shape": (1, 0, 6, 2)}), ModelError, "sizes of at least 1"),
    (
        convolution(w={"zero_point": [0, 0, 3, 0]}),
        UnsupportedError,
        r"CONV_2D \(operator 0, output 'y'\): zero points of weights 'w' must be 0, not 3",
    ),
    (
        convolution(w={"scale": np.ones(3), "axis": 1}),
        UnsupportedError,
        "scales of weights 'w' must lie along axis 0, not 1",
    ),
    (convolution(w={"data": None}), ModelError, "input 'w' is read before it is written"),
    (
        convolution(w={"shape": (4, 3, 3, 3), "data": np.ones((4, 3, 3, 3))}),
        ModelError,
        "4 filters of 3 channels must divide evenly among 2 input channels",
    ),
    (
        convolution(b={"shape": (3,), "data": np.ones(3)}),
        ModelError,
        r"bias 'b' must have 4 numbers, not shape \(3,\)",
    ),
    (
        convolution(b={"dtype": "int64"}),
        UnsupportedError,
        "input 2 'b' must be int32, and is int64",
    ),
    (
        convolution(y={"shape": (1, 6, 5, 4)}),
        ModelError,
        r"output 'y' must be \(1, 6, 6, 4\), not \(1, 6, 5, 4\)",
    ),
    (
        convolution(ops.Conv2D(stride=(0, 1))),
        UnsupportedError,
        r"stride must be within 1\.\.4096, not 0 x 1",
    ),
    (
        convolution(ops.Conv2D(padding="VALID", dilation=(3, 1))),
        ModelError,
        r"a window of 7 must fit into an input of 6 \(VALID\)",
    ),
    (
        unary(ops.Softmax(), INT8, INT8),
        UnsupportedError,
        r"SOFTMAX .*: output must have scale 0\.00390625 and zero point -128, not 1 and 0",
    ),
    (
        unary(ops.Reshape(shape=SHAPE), INT8, {"scale": 2.0}),
        UnsupportedError,
        "output must have the input's scale 1 and zero point 0, not 2 and 0",
    ),
    (
        unary(ops.HardSwish(), {"scale": 1.0}, {"scale": 0.001}),
        UnsupportedError,
        r"HARD_SWISH .*: output scale must be above 0\.0078125, not 0\.001",
    ),
    (
        cases.single_operator(ops.Mean(), (SHAPE, 1, 0), ((6, 6, 2), 1, 0), np.array([0])),
        UnsupportedError,
        r"MEAN .*: axes must leave out 0, the batch, not \[0\]",
    ),
    (
        cases.single_operator(ops.Mean(), (SHAPE, 1, 0), ((1, 6, 2), 1, 0), np.array([4])),
        ModelError,
        r"axes must be within -4\.\.3, not \[4\]",
    ),
]


@pytest.mark.parametrize(("data", "error", "message"), CASES)
def test_refusals(data: bytes, error: type[SlipstickError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        load_tflite_bytes(data, "tiny")
    assert "\n" not in str(caught.value)


def test_unknown_operator_is_named() -> None:
    class AddAll(ops.Operator):
        code = "ADD_N"
        version = 1

    message = r"tiny: ADD_N \(operator 0\) must be one of the operators .* lists, and is not$"
    with pytest.raises(UnsupportedError, match=message):
        load_tflite_bytes(unary(AddAll(), INT8, INT8), "tiny")


def input_as_output() -> bytes:
    writer = TfliteWriter()
    for name in ("x", "y"):
        writer.tensor(name, (1, 4), scale=1.0)
    writer.add(ops.Relu(), ["x"], ["y"])
    return writer.to_bytes(["x"], ["x"])


def test_wiring_is_checked() -> None:
    writer = TfliteWriter()
    for name in ("x", "y", "z"):
        writer.tensor(name, (1, 4), scale=1.0)
    writer.add(ops.Add(), ["x", "z"], ["y"])
    writer.add(ops.Relu(), ["y"], ["z"])
    with pytest.raises(ModelError, match="input 'z' is read before it is written"):
        load_tflite_bytes(writer.to_bytes(["x"], ["z"]))
    with pytest.raises(ModelError, match="output 'y'.: the output must be written once"):
        load_tflite_bytes(writer.to_bytes(["x", "z", "y"], ["z"]))
    with pytest.raises(ModelError, match="tensor 0 'x' is an output, and no operator writes it"):
        load_tflite_bytes(input_as_output())
    empty = TfliteWriter()
    empty.tensor("x", (1, 4), scale=1.0)
    with pytest.raises(ModelError, match="must have operators, inputs and outputs, not 0, 1 and"):
        load_tflite_bytes(empty.to_bytes(["x"], ["x"]))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-40])
def test_bad_scales(value: float) -> None:
    good = np.float32(0.7071).tobytes()
    data = unary(ops.Relu(), {"scale": 0.7071}, INT8)
    assert data.count(good) == 1
    with pytest.raises(ModelError, match="'x': scale must be within"):
        load_tflite_bytes(data.replace(good, np.float32(value).tobytes()))


def test_load_by_content(tmp_path: Path) -> None:
    path = tmp_path / "tiny.bin"
    path.write_bytes(convolution())
    graph = load(path)
    assert isinstance(graph, Graph)
    assert graph.name == load_tflite(str(path)).name == "tiny"
    path.write_bytes(b"\x08\x07\x12\x0abackend-test")
    with pytest.raises(ModelError, match="tiny must be an ONNX model with a graph, and has none"):
        load(path)
    for junk in (b"", b"TFL3", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n....", bytes(100)):
        path.write_bytes(junk)
        with pytest.raises(ModelError, match="must be a TFLite file, .* or an ONNX file, not"):
            load(path)
    with pytest.raises(ModelError, match="absent.tflite cannot be read: No such file"):
        load(tmp_path / "absent.tflite")
    with pytest.raises(ModelError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_schema_names_are_complete() -> None:
    """The writer's operators are read, each under the schema's own name."""
    assert all(hasattr(tflite.BuiltinOperator, name) for name in readers())

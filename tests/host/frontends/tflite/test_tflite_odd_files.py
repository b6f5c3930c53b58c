"""Files written in unusual ways, which the runtimes read: ours reads them to the same integers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_micro
from odd_tflite import Oddities, OddWriter, seeded
from slipstick import kernels
from slipstick.errors import DeviceError, ModelError, SlipstickError, UnsupportedError
from slipstick.frontends import load
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter
from tflm_networks import check

FILTERS = 4
SHAPE = (1, 5, 6, 2)


def layers(odd: Oddities, *, bias_shape: tuple[int, ...] = (FILTERS,)) -> bytes:
    """A convolution, a depthwise one and a fully connected layer, with biases a channel."""
    writer = OddWriter(odd)
    scales = np.linspace(0.01, 0.02, FILTERS)
    numbers = np.random.default_rng(7)

    def bias(name: str, scale: Any, shape: tuple[int, ...]) -> str:
        data = numbers.integers(-500, 500, shape)
        axis = 0 if np.ndim(scale) and len(shape) == 1 else None
        scale = scale if axis == 0 or not np.ndim(scale) else None
        return writer.tensor(name, shape, "int32", scale=scale, axis=axis, data=data)

    writer.tensor("x", SHAPE, scale=0.5, zero_point=3)
    kernel = seeded((FILTERS, 3, 3, 2))
    writer.tensor("k", kernel.shape, scale=scales, axis=0, data=kernel)
    writer.tensor("c", (1, 5, 6, FILTERS), scale=0.6, zero_point=-5)
    writer.add(ops.Conv2D(), ["x", "k", bias("kb", 0.5 * scales, bias_shape)], ["c"])
    deep = seeded((1, 3, 3, FILTERS), 3)
    writer.tensor("d", deep.shape, scale=scales, axis=3, data=deep)
    writer.tensor("e", (1, 5, 6, FILTERS), scale=0.7, zero_point=9)
    writer.add(ops.DepthwiseConv2D(), ["c", "d", bias("db", 0.6 * scales, (FILTERS,))], ["e"])
    dense = seeded((3, 30 * FILTERS), 4)
    writer.tensor("w", dense.shape, scale=0.05, data=dense)
    writer.tensor("y", (1, 3), scale=60.0)
    writer.add(ops.FullyConnected(), ["e", "w", bias("wb", 0.7 * 0.05, (3,))], ["y"])
    return writer.to_bytes(["x"], ["y"])


READ = {
    "bias axis beyond its rank, as person detection": Oddities(
        tensors={name: {"QuantizedDimension": 3} for name in ("kb", "db")}
    ),
    "axis of one scale": Oddities(tensors={"w": {"QuantizedDimension": 9}}),
    "fewer zero points than scales": Oddities(
        tensors={name: {"ZeroPoint": [0]} for name in ("k", "d", "kb")}
    ),
    "bias scales that do not fit it": Oddities(
        tensors={"kb": {"Scale": [1.0, 2.0], "ZeroPoint": [0, 0]}}
    ),
    "bias scale of zero": Oddities(tensors={"kb": {"Scale": [0.0], "ZeroPoint": [0]}}),
    "bias without quantisation": Oddities(tensors={"kb": {"Scale": None, "ZeroPoint": None}}),
    "no names": Oddities(tensors={name: {"Name": None} for name in ("x", "k", "c", "y")}),
    "one name for all": Oddities(tensors={name: {"Name": "t"} for name in ("x", "k", "c", "y")}),
    "names that are no text": Oddities(tensors={"c": {"Name": b"\xff\xfe"}}),
    "minima and maxima": Oddities(
        tensors={name: {"Min": [-1.0], "Max": [1.0]} for name in ("x", "k", "y")}
    ),
    "a free batch": Oddities(tensors={"x": {"ShapeSignature": [-1, *SHAPE[1:]]}}),
    "free sides, but sizes in the file": Oddities(
        tensors={"x": {"ShapeSignature": [-1, -1, -1, 2]}}
    ),
    "operator codes in the old field": Oddities(placement="old"),
    "operator codes in the new field": Oddities(placement="new"),
    "what nobody reads": Oddities(unused=True),
    "longer buffers": Oddities(padded=16),
}


@pytest.mark.parametrize("name", READ)
def test_read_as_tflm_does(name: str) -> None:
    check(layers(READ[name]), [seeded((3, *SHAPE[1:]), 5)])


def test_bias_of_four_dimensions() -> None:
    check(layers(Oddities(), bias_shape=(1, 1, 1, FILTERS)), [seeded((3, *SHAPE[1:]), 5)])


def test_unused_tensors_of_any_type() -> None:
    writer = OddWriter(Oddities(tensors={"odd": {"Type": 99}, "other": {"Scale": [-1.0]}}))
    writer.tensor("x", (1, 8), scale=0.5)
    writer.tensor("odd", (3, 0, 1), "int16")
    writer.tensor("other", (4,), scale=1.0)
    writer.tensor("y", (1, 8), scale=0.5)
    writer.add(ops.Relu(), ["x"], ["y"])
    data = writer.to_bytes(["x"], ["y"])
    np.testing.assert_array_equal(load_tflite_bytes(data).tensors["y"].shape, (1, 8))


def test_constants_behind_the_tables() -> None:
    """LiteRT reads them as here; tflm would take them for activations, and is not asked."""
    inside, outside = layers(Oddities()), layers(Oddities(outside=True))
    graphs = [load_tflite_bytes(data) for data in (inside, outside)]
    for name, tensor in graphs[0].tensors.items():
        if tensor.data is not None:
            np.testing.assert_array_equal(tensor.data, graphs[1].tensors[name].data)
    assert [node.operator for node in graphs[0].nodes] == [
        node.operator for node in graphs[1].nodes
    ]
    with pytest.raises(DeviceError, match="contents of tensor 1 must be in the file's tables"):
        TflmReference(outside)
    with pytest.raises(
        ModelError, match=r"tensor 7: its buffer, bytes \d+ to \d+, must lie within"
    ):
        load_tflite_bytes(outside[:-200])


def test_options_left_out_are_the_schema_s_defaults() -> None:
    class BareAdd(ops.Operator):
        code, version = "ADD", 1

    class BareConvolution(ops.Operator):
        code, version = "CONV_2D", 1

    writer = TfliteWriter()
    for name, scale in (("a", 0.5), ("b", 0.25), ("y", 1.0)):
        writer.tensor(name, (1, 7), scale=scale)
    writer.add(BareAdd(), ["a", "b"], ["y"])
    check(writer.to_bytes(["a", "b"], ["y"]), [seeded((2, 7)), seeded((2, 7), 9)])
    writer = TfliteWriter()
    writer.tensor("x", SHAPE, scale=0.5)
    writer.tensor("k", (2, 1, 1, 2), scale=0.5, data=np.ones((2, 1, 1, 2)))
    writer.add(BareConvolution(), ["x", "k"], [writer.tensor("y", SHAPE, scale=0.5)])
    message = r"operator 0 \(CONV_2D\) must have Conv2DOptions, which hold StrideH, and has none"
    with pytest.raises(ModelError, match=message):
        load_tflite_bytes(writer.to_bytes(["x"], ["y"]))


def test_a_mirror_without_its_mode_is_refused() -> None:
    """tflite-micro then mirrors symmetrically, and the schema's default is to reflect."""

    class BareMirror(ops.Operator):
        code, version = "MIRROR_PAD", 1

    writer = TfliteWriter()
    writer.tensor("x", (1, 4, 4, 2), scale=0.5)
    borders = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
    writer.tensor("b", (4, 2), dtype="int32", data=borders)
    writer.add(BareMirror(), ["x", "b"], [writer.tensor("y", (1, 7, 5, 2), scale=0.5)])
    with pytest.raises(ModelError, match="must have MirrorPadOptions, which hold Mode"):
        load_tflite_bytes(writer.to_bytes(["x"], ["y"]))


def test_absent_inputs_and_empty_shapes() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 6), scale=0.5)
    weights = seeded((4, 6))
    writer.tensor("w", weights.shape, scale=0.02, data=weights)
    writer.tensor("f", (1, 4), scale=0.6)
    writer.add(ops.FullyConnected(), ["x", "w", ""], ["f"])
    writer.add(ops.Reshape(shape=(1, 2, 2)), ["f", ""], [writer.tensor("y", (1, 2, 2), scale=0.6)])
    data = writer.to_bytes(["x"], ["y"])
    assert load_tflite_bytes(data).nodes[1].operator == "reshape"


def test_a_bias_of_int64_is_refused() -> None:
    """LiteRT refuses it; tflm would read its halves as two numbers."""
    writer = TfliteWriter()
    writer.tensor("x", (1, 6), scale=0.5)
    weights = seeded((4, 6))
    writer.tensor("w", weights.shape, scale=0.02, data=weights)
    writer.tensor("b", (4,), "int64", data=np.arange(4))
    writer.add(ops.FullyConnected(), ["x", "w", "b"], [writer.tensor("y", (1, 4), scale=0.6)])
    with pytest.raises(UnsupportedError, match="input 2 'b' must be int32, and is int64"):
        load_tflite_bytes(writer.to_bytes(["x"], ["y"]))


REFUSED: list[tuple[Oddities, type[SlipstickError], str]] = [
    (
        Oddities(tensors={"k": {"QuantizedDimension": 7}}),
        ModelError,
        r"tensor 1 'k': quantised axis must be within 0\.\.3, not 7",
    ),
    (
        Oddities(tensors={"k": {"ZeroPoint": [0, 0]}}),
        ModelError,
        "'k' must have 4 zero points, or one for all, not 2",
    ),
    (
        Oddities(tensors={"x": {"Shape": [1, 1, 1, 2], "ShapeSignature": [-1, -1, -1, 2]}}),
        UnsupportedError,
        r"'x': sizes must be fixed, and axis 1 is free: convert the network with fixed sizes",
    ),
    (
        Oddities(tensors={"wb": {"Scale": [9.0], "ZeroPoint": [0]}}),
        ModelError,
        r"bias 'wb' must have scale 0\.035, input's times weights', not 9: tflm refuses it too",
    ),
    (
        Oddities(tensors={"x": {"Scale": None}}),
        ModelError,
        "input 0 'x' must have a scale and a zero point, and has none",
    ),
]


@pytest.mark.parametrize(("odd", "error", "message"), REFUSED)
def test_refused(odd: Oddities, error: type[SlipstickError], message: str) -> None:
    with pytest.raises(error, match=message):
        load_tflite_bytes(layers(odd))


def test_the_runtime_s_own_examples() -> None:
    """What the package ships is read, and gives its numbers, float32 ones too."""
    folder = Path(tflite_micro.__file__).parent
    examples = sorted(folder.rglob("*.tflite"))
    assert examples
    for path in examples:
        graph = load(path)
        inputs = []
        for name in graph.inputs:
            shape, dtype = graph.tensors[name].shape, graph.tensors[name].dtype
            drawn = np.random.default_rng(3).uniform(-100, 100, (20, *shape[1:]))
            inputs.append((drawn / 20 if dtype == "float32" else drawn).astype(dtype))
        values = kernels.run_graph(graph, inputs)
        for name, expected in TflmReference(path).run_layers(*inputs).items():
            np.testing.assert_array_equal(values[name], expected, f"{path.name}: {name}")


def test_compile_says_that_a_float_network_has_nothing_for_the_device(
    slipstick: Any, tmp_path: Path
) -> None:
    writer = TfliteWriter()
    for name in ("x", "y"):
        writer.tensor(name, (1, 4), "float32")
    writer.add(ops.Tanh(), ["x"], ["y"])
    path = tmp_path / "float.tflite"
    path.write_bytes(writer.to_bytes(["x"], ["y"]))
    status, out, _ = slipstick("compile", path)
    assert status == 0
    assert "nothing runs on the device, as the network has no codes: quantise it to int8" in out

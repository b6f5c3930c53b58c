"""The host's kernels against tflm: random parameters, no code may differ."""

import zlib
from collections.abc import Callable

import numpy as np
import pytest
import tflm_cases as cases
from slipstick import kernels
from slipstick.graph import Quantization
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import clamp, encode_shift, requantize

EVERY_CODE = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)


def generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def quantization(scale: float, zero_point: int) -> Quantization:
    # files hold float32
    return Quantization(np.array([float(np.float32(scale))]), np.array([zero_point]))


@pytest.mark.parametrize("depthwise", [False, True])
def test_convolution(depthwise: bool) -> None:
    rng = generator(f"convolution {depthwise}")
    for trial in range(150):
        data, x = cases.convolution(rng, depthwise=depthwise)
        assert cases.differences(data, x) == 0, trial


@pytest.mark.parametrize(
    ("case", "trials"),
    [
        (cases.fully_connected, 300),
        (lambda rng: cases.pooling(rng, ops.AveragePool2D), 150),
        (lambda rng: cases.pooling(rng, ops.MaxPool2D), 100),
        (cases.mean, 400),
    ],
    ids=["fully_connected", "average_pool2d", "max_pool2d", "mean"],
)
def test_layer(case: Callable, trials: int, request: pytest.FixtureRequest) -> None:
    rng = generator(request.node.name)
    for trial in range(trials):
        data, x = case(rng)
        assert cases.differences(data, x) == 0, trial


@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d", "fully_connected"])
def test_products_next_to_ties(kind: str) -> None:
    """Every code times 1, rescaled so that the last bit of the multiplier decides."""
    rng = generator(f"ties {kind}")
    image, axis = (1, 16, 16, 1), {"conv2d": 0, "depthwise_conv2d": 3}.get(kind)
    operator: ops.Operator = ops.FullyConnected(activation="RELU6", keep_dimensions=True)
    if axis is not None:
        operator = (ops.Conv2D if axis == 0 else ops.DepthwiseConv2D)(activation="RELU6")
    for _ in range(300):
        source, weight = cases.scale(rng, -6, 0), cases.scale(rng, -9, -5)
        output = cases.tied_scale(rng, float(np.float32(source)) * float(np.float32(weight)))
        if rng.random() < 0.5:
            # the activation's own bound is a tie here
            output = 6 / (rng.integers(0, 120) + 0.5)
            weight = output / source * float(rng.choice([0.5, 1.5, 0.25]))
        writer = TfliteWriter()
        writer.tensor("x", image, scale=source, zero_point=cases.zero_point(rng))
        ones = np.ones((1, 1) if axis is None else (1, 1, 1, 1), np.int8)
        writer.tensor("w", ones.shape, scale=weight, data=ones)
        writer.tensor("y", image, scale=output, zero_point=cases.zero_point(rng))
        writer.add(operator, ["x", "w"], ["y"])
        data = writer.to_bytes(["x"], ["y"])
        assert cases.differences(data, EVERY_CODE.reshape(image)) == 0


def test_add() -> None:
    rng = generator("add")
    for trial in range(200):
        data, inputs = cases.addition(rng)
        assert cases.differences(data, *inputs) == 0, trial


def test_add_by_tables() -> None:
    rng = generator("add tables")
    a, b = (codes.ravel() for codes in np.meshgrid(EVERY_CODE, EVERY_CODE))
    for _ in range(20):
        first, second = cases.scale(rng), cases.scale(rng)
        points = [cases.zero_point(rng) for _ in range(3)]
        output = max(first, second) * cases.scale(rng, -1, 2)
        writer = TfliteWriter()
        shape = (1, len(a))
        writer.tensor("a", shape, scale=first, zero_point=points[0])
        writer.tensor("b", shape, scale=second, zero_point=points[1])
        writer.tensor("y", shape, scale=output, zero_point=points[2])
        writer.add(ops.Add(), ["a", "b"], ["y"])
        (expected,) = TflmReference(writer.to_bytes(["a", "b"], ["y"])).run(a[None], b[None])
        left, right, result = (
            quantization(scale, point)
            for scale, point in zip((first, second, output), points, strict=True)
        )
        tables = kernels.add_tables(left, right, result)
        assert tables.dtype == np.int32
        parameters = kernels.add_parameters(left, right, result)
        assert parameters.shift <= 0
        shift = encode_shift(Rounding.DOUBLE, -parameters.shift)
        total = tables[0][a.astype(int) + 128] + tables[1][b.astype(int) + 128]
        value = requantize(total, 0, parameters.multiplier, shift, Rounding.DOUBLE)
        np.testing.assert_array_equal(clamp(value, points[2], -128, 127)[None], expected)


def test_add_of_a_constant() -> None:
    rng = generator("constant")
    for shape in ((1, 4, 5, 3), (1, 1, 1, 3), (3,), (1,)):
        for swapped in (False, True):
            writer = TfliteWriter()
            writer.tensor("x", (1, 4, 5, 3), scale=0.25, zero_point=3)
            writer.tensor("c", shape, scale=0.5, zero_point=-9, data=cases.codes(rng, shape))
            writer.tensor("y", (1, 4, 5, 3), scale=0.7, zero_point=1)
            writer.add(ops.Add(), ["c", "x"] if swapped else ["x", "c"], ["y"])
            data = writer.to_bytes(["x"], ["y"])
            assert cases.differences(data, cases.codes(rng, (3, 4, 5, 3))) == 0


FIXED_OUTPUTS = {"logistic": (1 / 256, -128), "tanh": (1 / 128, 0)}


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("relu", ops.Relu()),
        ("relu6", ops.Relu6()),
        ("logistic", ops.Logistic()),
        ("tanh", ops.Tanh()),
        ("hard_swish", ops.HardSwish()),
        ("quantize", ops.Quantize()),
    ],
)
def test_table(name: str, operator: ops.Operator) -> None:
    rng = generator(name)
    for trial in range(300):
        source = cases.scale(rng, -9, 1), cases.zero_point(rng)
        output = source[0] * cases.scale(rng, -2, 2), cases.zero_point(rng)
        if name in ("relu", "quantize") and trial % 2:
            output = cases.tied_scale(rng, float(np.float32(source[0]))), output[1]
        # tflm's RELU6 copies codes: with two scales it would be wrong, and ours rescales
        output = source if name == "relu6" else FIXED_OUTPUTS.get(name, output)
        shape = EVERY_CODE.shape
        data = cases.single_operator(operator, (shape, *source), (shape, *output))
        assert cases.differences(data, EVERY_CODE) == 0, (source, output)
        table = kernels.activation_table(name, quantization(*source), quantization(*output))
        assert table.dtype == np.int8
        np.testing.assert_array_equal(table[None], TflmReference(data).run(EVERY_CODE)[0])


def test_relu6_rescales() -> None:
    table = kernels.activation_table("relu6", quantization(0.5, 0), quantization(0.25, -128))
    assert table[128 + 3] == 6 - 128
    assert table.min() == -128
    assert table.max() == 24 - 128


def test_relu_n1_to_1() -> None:
    table = kernels.activation_table("relu_n1_to_1", quantization(0.25, 0), quantization(0.25, 0))
    np.testing.assert_array_equal(table, np.clip(EVERY_CODE[0], -4, 4))


def test_softmax() -> None:
    rng = generator("softmax")
    for trial in range(300):
        classes = int(rng.choice([1, 2, 10, 300]))
        shape = (1, classes) if trial % 2 else (1, 3, classes)
        source = shape, cases.scale(rng, -9, 3), cases.zero_point(rng)
        operator = ops.Softmax(beta=float(rng.choice([1.0, 0.3, 2.0])))
        data = cases.single_operator(operator, source, (shape, 1 / 256, -128))
        assert cases.differences(data, cases.codes(rng, (6, *shape[1:]))) == 0, source


def test_pad_and_reshape() -> None:
    rng = generator("pad")
    for _ in range(30):
        shape = (1, *(int(size) for size in rng.integers(1, 6, 3)))
        border = np.concatenate([np.zeros((1, 2), int), rng.integers(0, 4, (3, 2))])
        out = tuple(int(n) for n in np.add(shape, border.sum(axis=1)))
        parameters = cases.scale(rng), cases.zero_point(rng)
        x = cases.codes(rng, (2, *shape[1:]))
        data = cases.single_operator(ops.Pad(), (shape, *parameters), (out, *parameters), border)
        assert cases.differences(data, x) == 0
        flat = (1, int(np.prod(shape)))
        operator = ops.Reshape(shape=flat)
        data = cases.single_operator(operator, (shape, *parameters), (flat, *parameters))
        assert cases.differences(data, x) == 0


class PadWithValue(ops.Pad):
    code = "PADV2"
    table = "PadV2Options"


class Squeeze(ops.Operator):
    code = "SQUEEZE"
    version = 1
    table = "SqueezeOptions"

    def fields(self) -> dict[str, ops.Field]:
        return {"SqueezeDims": (1,)}


class ExpandDimensions(ops.Operator):
    code = "EXPAND_DIMS"
    version = 1
    table = "ExpandDimsOptions"


@pytest.mark.parametrize(
    ("operator", "out", "constants"),
    [
        (PadWithValue(), (1, 2, 6, 4), {"borders": [[0, 0], [0, 1], [2, 1], [0, 0]], "value": [9]}),
        (Squeeze(), (1, 3, 4), {}),
        (ExpandDimensions(), (1, 1, 3, 4, 1), {"axis": [4]}),
    ],
)
def test_relatives_of_pad_and_reshape(
    operator: ops.Operator, out: tuple[int, ...], constants: dict[str, list]
) -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 1, 3, 4), scale=0.5, zero_point=-3)
    for name, contents in constants.items():
        data, dtype = np.array(contents), "int8" if name == "value" else "int32"
        scale = 0.5 if name == "value" else None
        writer.tensor(name, data.shape, dtype, scale=scale, zero_point=-3, data=data)
    writer.tensor("y", out, scale=0.5, zero_point=-3)
    writer.add(operator, ["x", *constants], ["y"])
    x = cases.codes(generator("relatives"), (2, 1, 3, 4))
    assert cases.differences(writer.to_bytes(["x"], ["y"]), x) == 0


@pytest.mark.parametrize(
    ("source", "target"),
    [("uint8", "int8"), ("int8", "uint8"), ("float32", "int8"), ("int8", "float32")],
)
def test_conversion(source: str, target: str) -> None:
    rng = generator(source + target)
    operator = ops.Dequantize() if target == "float32" else ops.Quantize()
    for _ in range(60):
        writer = TfliteWriter()
        scale = cases.scale(rng)
        scales = {"x": scale, "y": cases.tied_scale(rng, float(np.float32(scale)))}
        for name, dtype in (("x", source), ("y", target)):
            if dtype == "float32":
                writer.tensor(name, (1, 256), dtype)
                continue
            low, high = cases.LOW_HIGH[dtype]
            point = int(rng.integers(low, high))
            writer.tensor(name, (1, 256), dtype, scale=scales[name], zero_point=point)
        writer.add(operator, ["x"], ["y"])
        if source == "float32":
            # halves of codes are the ties
            x = (rng.integers(-400, 400, (1, 256)) / 2 * scales["y"]).astype(np.float32)
        else:
            x = (np.arange(256) + cases.LOW_HIGH[source][0]).astype(source).reshape(1, 256)
        assert cases.differences(writer.to_bytes(["x"], ["y"]), x) == 0

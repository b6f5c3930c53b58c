"""The TFLite writer: what it writes runs on the reference runtime and computes what it should."""

import numpy as np
import pytest
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import BUFFER_ALIGNMENT, IDENTIFIER, TfliteWriter
from tflite_micro.python.tflite_micro import runtime

RNG_SEED = 2


def run(model: bytes, *inputs: np.ndarray) -> np.ndarray:
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 18)
    for index, value in enumerate(inputs):
        interpreter.set_input(value, index)
    interpreter.invoke()
    return interpreter.get_output(0)


def unary(
    operator: ops.Operator,
    shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    *,
    scale: float = 1 / 16,
    zero_point: int = 0,
    parameters: np.ndarray | None = None,
) -> np.ndarray:
    """Codes that an operator of one activation makes of seeded codes with scale 1/16."""
    x = np.random.default_rng(RNG_SEED).integers(-128, 128, shape, dtype=np.int8)
    writer = TfliteWriter()
    writer.tensor("x", shape, scale=1 / 16)
    writer.tensor("y", output_shape, scale=scale, zero_point=zero_point)
    inputs = ["x"]
    if parameters is not None:
        inputs.append(writer.tensor("p", parameters.shape, "int32", data=parameters))
    writer.add(operator, inputs, ["y"])
    y = run(writer.to_bytes(["x"], ["y"]), x)
    return np.stack([np.broadcast_to(x, y.shape), y]) if x.shape == y.shape else y


def convolution(stride: tuple[int, int] = (1, 1), padding: str = "SAME") -> TfliteWriter:
    """Identity weights: the middle tap of each of two channels, with per-channel scales."""
    weights = np.zeros((2, 3, 3, 2), np.int8)
    weights[0, 1, 1, 0] = 64
    weights[1, 1, 1, 1] = 32
    scales = np.array([1 / 64, 1 / 32])
    height, width = (6, 7) if padding == "SAME" else (4, 5)
    shape = (1, -(-height // stride[0]), -(-width // stride[1]), 2)
    writer = TfliteWriter()
    writer.tensor("x", (1, 6, 7, 2), scale=0.5, zero_point=3)
    writer.tensor("w", weights.shape, scale=scales, axis=0, data=weights)
    writer.tensor("b", (2,), "int32", scale=scales * 0.5, axis=0, data=np.array([64, 0]))
    writer.tensor("y", shape, scale=0.5, zero_point=3)
    writer.add(ops.Conv2D(stride=stride, padding=padding), ["x", "w", "b"], ["y"])
    return writer


@pytest.mark.parametrize(
    ("stride", "padding", "centres"),
    [
        ((1, 1), "SAME", np.s_[:, :, :]),
        ((1, 1), "VALID", np.s_[:, 1:5, 1:6]),
        # 6 rows by 2 are padded (0, 1), 7 columns by 3 are padded (1, 1)
        ((2, 3), "SAME", np.s_[:, 1::2, ::3]),
        ((2, 3), "VALID", np.s_[:, 1:5:2, 1:6:3]),
    ],
)
def test_conv(stride: tuple[int, int], padding: str, centres: tuple[slice, ...]) -> None:
    x = np.random.default_rng(RNG_SEED).integers(-120, 120, (1, 6, 7, 2), dtype=np.int8)
    y = run(convolution(stride, padding).to_bytes(["x"], ["y"]), x)
    np.testing.assert_array_equal(y, x[centres] + np.array([1, 0], np.int8))


def test_depthwise_with_multiplier_and_relu() -> None:
    weights = np.zeros((1, 3, 3, 4), np.int8)
    weights[0, 1, 1] = [1, -1, 1, -1]
    writer = TfliteWriter()
    writer.tensor("x", (1, 5, 5, 2), scale=0.5)
    writer.tensor("w", weights.shape, scale=np.ones(4), axis=3, data=weights)
    writer.tensor("y", (1, 5, 5, 4), scale=0.5, zero_point=-128)
    operator = ops.DepthwiseConv2D(multiplier=2, activation="RELU")
    # tflm crashes on an absent bias written as -1: it is left off instead
    writer.add(operator, ["x", "w"], ["y"])
    x = np.random.default_rng(RNG_SEED).integers(-128, 128, (1, 5, 5, 2), dtype=np.int8)
    signed = np.repeat(x.astype(int), 2, axis=-1) * [1, -1, 1, -1]
    expected = np.clip(np.maximum(signed, 0) - 128, -128, 127)
    np.testing.assert_array_equal(run(writer.to_bytes(["x"], ["y"]), x), expected)


def test_fully_connected() -> None:
    rng = np.random.default_rng(RNG_SEED)
    x = rng.integers(-8, 8, (1, 12), dtype=np.int8)
    weights = rng.integers(-4, 4, (5, 12), dtype=np.int8)
    bias = rng.integers(-20, 20, 5, dtype=np.int32)
    writer = TfliteWriter()
    writer.tensor("x", x.shape, scale=1.0)
    writer.tensor("w", weights.shape, scale=1.0, data=weights)
    writer.tensor("b", bias.shape, "int32", scale=1.0, data=bias)
    writer.tensor("y", (1, 5), scale=1.0)
    writer.add(ops.FullyConnected(activation="RELU6"), ["x", "w", "b"], ["y"])
    expected = np.clip(weights.astype(int) @ x[0] + bias, 0, 6)[None]
    np.testing.assert_array_equal(run(writer.to_bytes(["x"], ["y"]), x), expected)


def test_add_of_two_scales() -> None:
    writer = TfliteWriter()
    writer.tensor("a", (1, 4), scale=1.0)
    writer.tensor("b", (1, 4), scale=0.5, zero_point=-1)
    writer.tensor("y", (1, 4), scale=0.5)
    writer.add(ops.Add(activation="RELU"), ["a", "b"], ["y"])
    a = np.array([[1, 2, -30, 5]], np.int8)
    b = np.array([[-1, 9, 3, 0]], np.int8)
    expected = np.maximum(2 * a + b + 1, 0)
    np.testing.assert_array_equal(run(writer.to_bytes(["a", "b"], ["y"]), a, b), expected)


def test_elementwise() -> None:
    shape = (1, 64)
    for operator, function, scale, zero_point in (
        (ops.Relu(), lambda v: np.maximum(v, 0), 1 / 16, 0),
        (ops.Relu6(), lambda v: np.clip(v, 0, 6), 1 / 16, 0),
        (ops.Logistic(), lambda v: 1 / (1 + np.exp(-v)), 1 / 256, -128),
        (ops.Tanh(), np.tanh, 1 / 128, 0),
        (ops.HardSwish(), lambda v: v * np.clip(v + 3, 0, 6) / 6, 1 / 16, 0),
        (ops.Quantize(), lambda v: v, 1 / 4, 7),
    ):
        x, y = unary(operator, shape, shape, scale=scale, zero_point=zero_point)
        expected = np.clip(function(x / 16) / scale + zero_point, -128, 127)
        assert np.abs(y - expected).max() <= 1.01, operator.code


def test_softmax_sums_to_one() -> None:
    _, y = unary(ops.Softmax(), (1, 10), (1, 10), scale=1 / 256, zero_point=-128)
    assert abs((y.astype(int) + 128).sum() - 256) <= 5


def test_shapes_change() -> None:
    x = np.random.default_rng(RNG_SEED).integers(-128, 128, (1, 4, 4, 2), dtype=np.int8)
    blocks = x.reshape(1, 2, 2, 2, 2, 2)
    peak = unary(ops.MaxPool2D(window=(2, 2), stride=(2, 2)), x.shape, (1, 2, 2, 2))
    np.testing.assert_array_equal(peak, blocks.max(axis=(2, 4)))
    average = unary(ops.AveragePool2D(window=(2, 2), stride=(2, 2)), x.shape, (1, 2, 2, 2))
    assert np.abs(average - blocks.mean(axis=(2, 4))).max() <= 0.5
    mean = unary(ops.Mean(), x.shape, (1, 2), parameters=np.array([1, 2], np.int32))
    assert np.abs(mean - x.mean(axis=(1, 2))).max() <= 0.51
    flat = unary(ops.Reshape(shape=(1, 32)), x.shape, (1, 32))
    np.testing.assert_array_equal(flat, x.reshape(1, 32))
    border = np.array([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32)
    padded = unary(ops.Pad(), x.shape, (1, 6, 6, 2), parameters=border)
    np.testing.assert_array_equal(padded, np.pad(x, border.tolist()))


def test_dequantize() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 3), scale=0.25, zero_point=1)
    writer.tensor("y", (1, 3), "float32")
    writer.add(ops.Dequantize(), ["x"], ["y"])
    y = run(writer.to_bytes(["x"], ["y"]), np.array([[1, 5, -127]], np.int8))
    np.testing.assert_array_equal(y, np.array([[0.0, 1.0, -32.0]], np.float32))


def test_file_layout() -> None:
    data = convolution().to_bytes(["x"], ["y"])
    assert data == convolution().to_bytes(["x"], ["y"])
    assert data[4:8] == IDENTIFIER
    weights = np.zeros((2, 3, 3, 2), np.int8)
    weights[[0, 1], 1, 1, [0, 1]] = [64, 32]
    for contents in (weights.tobytes(), np.array([64, 0], np.int32).tobytes()):
        assert data.index(contents) % BUFFER_ALIGNMENT == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "a tensor's name must be new and not empty, not ''"),
        ({"dtype": "int4"}, "tensor w: dtype must be one of .* not 'int4'"),
        ({"scale": [1.0, 2.0]}, "tensor w: 2 scales need an axis"),
        ({"scale": -1.0}, "tensor w: scales must be positive and finite, not -1.0"),
        ({"scale": 1.0, "axis": 2}, r"tensor w: axis must be within 0..1, not 2"),
        ({"scale": [1.0], "axis": 0}, "tensor w: axis 0 has 2 channels, not 1 scales"),
        ({"data": [1, 2]}, r"tensor w: data must have the shape \(2, 2\), not \(2,\)"),
        ({"data": [[1, 2], [3, 200]]}, "tensor w: data must hold values of int8"),
    ],
)
def test_bad_tensors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TfliteWriter().tensor(**{"name": "w", "shape": (2, 2)} | arguments)


def test_bad_operators() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 4), scale=1.0)
    with pytest.raises(ValueError, match="RELU writes tensor 'y', which is not declared"):
        writer.add(ops.Relu(), ["x"], ["y"])
    writer.add(ops.Add(activation="SIGN"), ["x", "x"], ["x"])
    with pytest.raises(ValueError, match=r"activation must be one of .* not 'SIGN'"):
        writer.to_bytes(["x"], ["x"])

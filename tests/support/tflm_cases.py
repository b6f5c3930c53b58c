"""Small networks of random parameters, and the comparison of the host's kernels with tflm."""

import numpy as np
from numpy.random import Generator
from slipstick import kernels
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
LOW_HIGH = {"int8": (-128, 128), "uint8": (0, 256)}


def codes(rng: Generator, shape: tuple[int, ...], dtype: str = "int8") -> np.ndarray:
    """Random codes, half of the time only extreme ones."""
    low, high = LOW_HIGH[dtype]
    if rng.random() < 0.3:
        return rng.choice(np.array([low, high - 1]), shape).astype(dtype)
    return rng.integers(low, high, shape, dtype=dtype)


def zero_point(rng: Generator) -> int:
    return int(rng.choice([-128, 127, 0, int(rng.integers(-128, 128))]))


def scale(rng: Generator, low: float = -8, high: float = 1) -> float:
    return float(2 ** rng.uniform(low, high))


def tied_scale(rng: Generator, numerator: float) -> float:
    """An output scale for which some products lie next to the border between two codes."""
    half = rng.integers(0, 120) + 0.5
    return numerator * float(rng.integers(2, 255)) / float(half)


def differences(data: bytes, *inputs: np.ndarray) -> int:
    """Codes that differ between tflm and the kernels, over all layers."""
    graph = load_tflite_bytes(data)
    expected = TflmReference(data).run_layers(*inputs)
    actual = kernels.run_graph(graph, inputs)
    for name, value in expected.items():
        assert actual[name].shape == value.shape, name
        assert actual[name].dtype == value.dtype, name
    return sum(int(np.sum(actual[name] != value)) for name, value in expected.items())


def single_operator(
    operator: ops.Operator,
    source: tuple[tuple[int, ...], float, int],
    output: tuple[tuple[int, ...], float, int],
    parameters: np.ndarray | None = None,
) -> bytes:
    """A network of one operator from x to y, each (shape, scale, zero point)."""
    writer = TfliteWriter()
    writer.tensor("x", source[0], scale=source[1], zero_point=source[2])
    writer.tensor("y", output[0], scale=output[1], zero_point=output[2])
    inputs = ["x"]
    if parameters is not None:
        inputs.append(writer.tensor("p", parameters.shape, "int32", data=parameters))
    writer.add(operator, inputs, ["y"])
    return writer.to_bytes(["x"], ["y"])


def _window_size(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    extent = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == "SAME" else (size - extent) // stride + 1


def convolution(rng: Generator, *, depthwise: bool) -> tuple[bytes, np.ndarray]:
    """A random convolution and a batch of two for it."""
    kernel = tuple(int(k) for k in rng.integers(1, 5, 2))
    dilation = tuple(int(d) for d in rng.choice([1, 1, 2, 3], 2))
    stride = tuple(int(s) for s in rng.integers(1, 4, 2))
    padding = str(rng.choice(["SAME", "VALID"]))
    size = tuple(
        int(rng.integers((k - 1) * d + 1, 14)) for k, d in zip(kernel, dilation, strict=True)
    )
    groups, multiplier = int(rng.choice([1, 1, 2])), int(rng.integers(1, 4))
    channels = groups * int(rng.integers(1, 6))
    filters = channels * multiplier if depthwise else groups * int(rng.integers(1, 6))
    options = {"stride": stride, "dilation": dilation, "padding": padding}
    activation = str(rng.choice(ACTIVATIONS))
    if depthwise:
        operator = ops.DepthwiseConv2D(**options, activation=activation, multiplier=multiplier)
        weights_shape, axis = (1, *kernel, filters), 3
    else:
        operator = ops.Conv2D(**options, activation=activation)
        weights_shape, axis = (filters, *kernel, channels // groups), 0
    counts = filters if rng.random() < 0.7 else 1
    scales = 2.0 ** rng.uniform(-9, -5, counts)
    input_scale = scale(rng, -6, 0)
    spread = 74 * 74 * np.sqrt(np.prod(kernel) * channels) / 60
    output_scale = input_scale * scales[0] * spread * scale(rng, -2, 2)
    writer = TfliteWriter()
    writer.tensor("x", (1, *size, channels), scale=input_scale, zero_point=zero_point(rng))
    weights = codes(rng, weights_shape)
    axis = axis if counts > 1 else None
    writer.tensor("w", weights_shape, scale=scales, axis=axis, data=weights)
    inputs = ["x", "w"]
    if rng.random() < 0.7:
        bias = rng.integers(-20000, 20000, filters)
        inputs.append(writer.tensor("b", bias.shape, "int32", scale=1.0, data=bias))
    out = [
        _window_size(*each, padding) for each in zip(size, kernel, stride, dilation, strict=True)
    ]
    writer.tensor("y", (1, *out, filters), scale=output_scale, zero_point=zero_point(rng))
    writer.add(operator, inputs, ["y"])
    return writer.to_bytes(["x"], ["y"]), codes(rng, (2, *size, channels))


def fully_connected(rng: Generator) -> tuple[bytes, np.ndarray]:
    """A random fully connected layer; small ones have products next to rounding borders."""
    inputs, outputs = int(rng.choice([1, 2, 33])), int(rng.integers(1, 9))
    rank3 = rng.random() < 0.3
    shape = (1, 3, inputs) if rank3 else (1, inputs)
    input_scale, weight_scale = scale(rng, -6, 0), scale(rng, -9, -5)
    product = float(np.float32(input_scale)) * float(np.float32(weight_scale))
    writer = TfliteWriter()
    writer.tensor("x", shape, scale=input_scale, zero_point=zero_point(rng))
    weights = codes(rng, (outputs, inputs))
    per_channel = rng.random() < 0.3 and outputs > 1
    scales = weight_scale * (2.0 ** rng.uniform(-1, 1, outputs)) if per_channel else weight_scale
    axis = 0 if per_channel else None
    writer.tensor("w", weights.shape, scale=scales, axis=axis, data=weights)
    bias = rng.integers(-2000, 2000, outputs)
    writer.tensor("b", bias.shape, "int32", scale=product, data=bias)
    output = tied_scale(rng, product) if inputs == 1 else product * 74 * 74 / 30
    writer.tensor("y", (*shape[:-1], outputs), scale=output, zero_point=zero_point(rng))
    operator = ops.FullyConnected(activation=str(rng.choice(ACTIVATIONS)), keep_dimensions=rank3)
    writer.add(operator, ["x", "w", "b"], ["y"])
    return writer.to_bytes(["x"], ["y"]), codes(rng, (8, *shape[1:]))


def addition(rng: Generator) -> tuple[bytes, tuple[np.ndarray, np.ndarray]]:
    """A random ADD, at times broadcast."""
    shape = (1, 4, 5, 3)
    other = (1, 1, 1, 3) if rng.random() < 0.3 else shape
    first, second = scale(rng), scale(rng)
    writer = TfliteWriter()
    writer.tensor("a", shape, scale=first, zero_point=zero_point(rng))
    writer.tensor("b", other, scale=second, zero_point=zero_point(rng))
    output = max(first, second) * scale(rng, -1, 2)
    writer.tensor("y", shape, scale=output, zero_point=zero_point(rng))
    writer.add(ops.Add(activation=str(rng.choice(ACTIVATIONS))), ["a", "b"], ["y"])
    batch = codes(rng, (3, *shape[1:])), codes(rng, (3, *other[1:]))
    return writer.to_bytes(["a", "b"], ["y"]), batch


def pooling(rng: Generator, operator: type[ops.AveragePool2D]) -> tuple[bytes, np.ndarray]:
    """A random pooling."""
    window = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    stride = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    padding = str(rng.choice(["SAME", "VALID"]))
    shape = (1, int(rng.integers(4, 12)), int(rng.integers(4, 12)), int(rng.integers(1, 5)))
    out = [
        _window_size(size, kernel, step, 1, padding)
        for size, kernel, step in zip(shape[1:3], window, stride, strict=True)
    ]
    activation = str(rng.choice(ACTIVATIONS))
    parameters = (scale(rng, -5, 0), zero_point(rng))
    data = single_operator(
        operator(window=window, stride=stride, padding=padding, activation=activation),
        (shape, *parameters),
        ((1, *out, shape[3]), *parameters),
    )
    return data, codes(rng, (2, *shape[1:]))


def mean(rng: Generator) -> tuple[bytes, np.ndarray]:
    """A random MEAN, over the image's axes or others."""
    shape = (1, *(int(size) for size in rng.integers(1, 9, 3)))
    choices = [(1, 2), (1, 2), (3,), (1,), (2, 3), (-1, 1), (1, 2, 3)]
    axes = choices[int(rng.integers(len(choices)))]
    reduced = {axis % 4 for axis in axes}
    keep = bool(rng.random() < 0.5)
    out = tuple(1 if axis in reduced else size for axis, size in enumerate(shape))
    if not keep:
        out = tuple(size for axis, size in enumerate(shape) if axis not in reduced)
    source = scale(rng)
    same = rng.random() < 0.3
    point = zero_point(rng)
    count = int(np.prod([shape[axis] for axis in reduced]))
    output = source if same else tied_scale(rng, float(np.float32(source)) / count)
    data = single_operator(
        ops.Mean(keep_dimensions=keep),
        (shape, source, point),
        (out, output, point if same else zero_point(rng)),
        np.array(axes, np.int32),
    )
    return data, codes(rng, (4, *shape[1:]))

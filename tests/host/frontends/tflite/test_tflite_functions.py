"""Operators that compute code by code, or over axes, against tflm: kernels and golden session."""

from typing import Any

import numpy as np
import pytest
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from tflm_cases import ACTIVATIONS, codes, scale, tied_scale, zero_point
from tflm_networks import check, described, integers, network, random_shape, unary

EVERY_CODE = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)


@pytest.mark.parametrize("kind", [functions.Sub, functions.Mul])
def test_arithmetic(kind: type[functions.Sub]) -> None:
    rng = np.random.default_rng(1)
    for trial in range(60):
        shape = random_shape(rng)
        # the operand that is not broadcast stands first or second
        small = tuple(1 if rng.random() < 0.4 else size for size in shape)
        pair = [shape, shape if trial % 2 else small][:: 1 if trial % 3 else -1]
        scales = [scale(rng), scale(rng)]
        top = max(scales) * scale(rng, -1, 2)
        if kind is functions.Mul:
            top = tied_scale(rng, float(np.float32(scales[0])) * float(np.float32(scales[1])))
        inputs = [
            described(each, (factor, zero_point(rng)))
            for each, factor in zip(pair, scales, strict=True)
        ]
        if trial % 5 == 0:
            inputs[1]["data"] = codes(rng, pair[1])
        operator = kind(activation=str(rng.choice(ACTIVATIONS)))
        data = network(operator, inputs, [described(shape, (top, zero_point(rng)))])
        program = check(data, [codes(rng, (2, *x["shape"][1:])) for x in inputs if "data" not in x])
        if kind is functions.Sub and pair[0] == pair[1] and "data" not in inputs[1]:
            assert program.layers[0].where == "device"


def test_products_with_a_vector_run_on_the_array() -> None:
    rng = np.random.default_rng(14)
    for trial in range(20):
        shape = random_shape(rng)
        vector = (1, 1, 1, shape[3]) if trial % 2 else (shape[3],)
        factors = described(vector, (scale(rng), 0), data=codes(rng, vector))
        x = described(shape, (scale(rng), zero_point(rng)))
        top = 60 * x["scale"] * factors["scale"], zero_point(rng)
        tensors = [x, factors] if trial % 3 else [factors, x]
        program = check(
            network(functions.Mul(), tensors, [described(shape, top)]),
            [codes(rng, (2, *shape[1:]))],
        )
        assert program.layers[0].where == "device"


@pytest.mark.parametrize(
    "kind", [first.Add, functions.Sub, functions.Mul, functions.SquaredDifference]
)
def test_functions_of_one_code_are_tables(kind: type[Any]) -> None:
    rng = np.random.default_rng(15)
    for trial in range(10):
        same = scale(rng, -6, -2), zero_point(rng)
        number = described((1,), same, data=codes(rng, (1,)))
        top = (
            (same[0] * 3 if kind in (first.Add, functions.Sub) else same[0] ** 2 * 200),
            zero_point(rng),
        )
        x = described((1, 256), same)
        # a number, from either side
        tensors = [x, number] if trial % 2 else [number, x]
        program = check(network(kind(), tensors, [described((1, 256), top)]), [EVERY_CODE])
        assert program.layers[0].why == "post-processor, table"


@pytest.mark.parametrize("kind", [first.Add, functions.Sub])
@pytest.mark.parametrize("scales", [(0.1, 0.15, 0.1), (0.15, 0.1, 0.1), (0.05, 0.07, 0.013)])
def test_sums_between_two_codes(kind: type[Any], scales: tuple[float, float, float]) -> None:
    """Ties depend on the factors' last bits: every pair of codes."""
    a, b, top = (described((1, 256, 256), (each, 3)) for each in scales)
    pairs = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    inputs = [codes.astype(np.int8).reshape(1, 256, 256) for codes in pairs]
    check(network(kind(), [a, b], [top]), inputs)


@pytest.mark.parametrize("kind", [functions.Maximum, functions.Minimum])
def test_choice(kind: type[functions.Maximum]) -> None:
    rng = np.random.default_rng(2)
    for trial in range(20):
        shape = random_shape(rng)
        small = shape if trial % 2 else (*shape[:1], 1, 1, *shape[3:])
        same = scale(rng), zero_point(rng)
        inputs = [described(shape, same), described(small, same)]
        if trial % 5 == 0:
            inputs[1]["data"] = codes(rng, small)
        data = network(kind(), inputs, [described(shape, same)])
        check(data, [codes(rng, (2, *x["shape"][1:])) for x in inputs if "data" not in x])


def test_squared_difference() -> None:
    rng = np.random.default_rng(3)
    for trial in range(30):
        shape = random_shape(rng)
        small = shape if trial % 2 else (*shape[:1], 1, 1, *shape[3:])
        scales = [scale(rng), scale(rng)]
        top = 300 * max(scales) ** 2 * scale(rng, -1, 2)
        inputs = [
            described(each, (factor, zero_point(rng)))
            for each, factor in zip((shape, small), scales, strict=True)
        ]
        data = network(
            functions.SquaredDifference(), inputs, [described(shape, (top, zero_point(rng)))]
        )
        check(data, [codes(rng, (2, *x["shape"][1:])) for x in inputs])


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.1, 0.2, 0.3, 1.0, 1.7, -0.4])
def test_leaky_relu(alpha: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        source = scale(rng), zero_point(rng)
        top = tied_scale(rng, source[0]), zero_point(rng)
        tensors = [described((1, 256), source)], [described((1, 256), top)]
        program = check(network(functions.LeakyRelu(alpha=alpha), *tensors), [EVERY_CODE])
        assert program.layers[0].where == "device"
        assert program.layers[0].why == "post-processor, table"


def test_elu() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        source = scale(rng, -8, 0), zero_point(rng)
        top = source[0] * scale(rng, -2, 2), zero_point(rng)
        tensors = [described((1, 256), source)], [described((1, 256), top)]
        program = check(network(functions.Elu(), *tensors), [EVERY_CODE])
        assert program.layers[0].where == "device"


def test_prelu() -> None:
    rng = np.random.default_rng(6)
    for trial in range(40):
        shape = random_shape(rng)
        slope = [(1, 1, 1, shape[3]), (1, *shape[1:]), (1, 1, 1, 1), (1, 1, shape[3])][trial % 4]
        source, slope_scale = scale(rng), scale(rng, -9, -6)
        top = source * scale(rng, -1, 1), zero_point(rng)
        alpha = described(slope, (slope_scale, zero_point(rng)), data=codes(rng, slope))
        inputs = [described(shape, (source, zero_point(rng))), alpha]
        data = network(functions.Prelu(), inputs, [described(shape, top)])
        program = check(data, [codes(rng, (2, *shape[1:]))])
        centred = alpha["data"].astype(int) - alpha["zero_point"]
        if trial % 4 == 2 or trial % 4 == 0 and abs(centred + 0.5).max() < 128:
            assert {layer.where for layer in program.layers} == {"device"}


def test_log_softmax() -> None:
    rng = np.random.default_rng(7)
    for trial in range(150):
        classes = int(rng.choice([1, 2, 10, 300]))
        shape = (1, classes) if trial % 2 else (1, 3, classes)
        source = described(shape, (scale(rng, -9, 3), zero_point(rng)))
        data = network(functions.LogSoftmax(), [source], [described(shape, (1 / 16, 127))])
        check(data, [codes(rng, (6, *shape[1:]))])


@pytest.mark.parametrize("kind", [functions.ReduceMax, functions.ReduceMin])
def test_extremes(kind: type[functions.ReduceMax]) -> None:
    rng = np.random.default_rng(8)
    for axes in [(1, 2), (3,), (-1, 1), (1, 2, 3), (2,)]:
        shape = random_shape(rng)
        reduced = {axis % 4 for axis in axes}
        for keep in (True, False):
            kept = tuple(1 if axis in reduced else size for axis, size in enumerate(shape))
            short = tuple(size for axis, size in enumerate(shape) if axis not in reduced)
            operator = kind(keep_dimensions=keep)
            unary(rng, operator, shape, kept if keep else short, integers(axes))


def test_sum() -> None:
    rng = np.random.default_rng(16)
    for axes in [(1, 2), (3,), (-1, 1), (1, 2, 3), (2,)] * 4:
        shape = random_shape(rng)
        source, reduced = scale(rng), {axis % 4 for axis in axes}
        out = tuple(1 if axis in reduced else size for axis, size in enumerate(shape))
        top = tied_scale(rng, float(np.float32(source))), zero_point(rng)
        inputs = [described(shape, (source, zero_point(rng))), integers(axes)]
        data = network(functions.Sum(keep_dimensions=True), inputs, [described(out, top)])
        check(data, [codes(rng, (3, *shape[1:]))])


@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_matrices(flips: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(17)
    for trial in range(12):
        heads, rows, inner, columns = (int(size) for size in rng.integers(1, 7, 4))
        a, b = (rows, inner), (inner, columns)
        shapes = [
            (1, *((1,) if trial % 3 == place else (heads,)), *pair[:: -1 if flip else 1])
            for place, (pair, flip) in enumerate(zip((a, b), flips, strict=True))
        ]
        top = 0.05 * 0.05 * 74 * 74 * np.sqrt(inner) / 60, zero_point(rng)
        inputs = [described(shape, (0.05, zero_point(rng))) for shape in shapes]
        operator = functions.BatchMatMul(adjoint_a=flips[0], adjoint_b=flips[1])
        data = network(operator, inputs, [described((1, heads, rows, columns), top)])
        check(data, [codes(rng, (2, *shape[1:])) for shape in shapes])


def test_absolute_value_and_root() -> None:
    rng = np.random.default_rng(18)
    for _ in range(60):
        source = scale(rng), zero_point(rng)
        top = tied_scale(rng, float(np.float32(source[0]))), zero_point(rng)
        tensors = [described((1, 256), source)], [described((1, 256), top)]
        assert check(network(functions.Abs(), *tensors), [EVERY_CODE]).layers[0].where == "device"
        top = scale(rng, -4, 2) / np.sqrt(100 * source[0]), zero_point(rng)
        tensors = [described((1, 256), source)], [described((1, 256), top)]
        check(network(functions.Rsqrt(), *tensors), [np.maximum(EVERY_CODE, source[1])])


def test_mean_any_axes() -> None:
    rng = np.random.default_rng(9)
    for axes in [(1,), (2,), (3,), (1, 3), (1, 2), (1, 2, 3)]:
        shape = random_shape(rng)
        out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        unary(rng, first.Mean(keep_dimensions=True), shape, out, integers(axes))


@pytest.mark.parametrize("kind", [functions.ArgMax, functions.ArgMin])
def test_places(kind: type[functions.ArgMax]) -> None:
    rng = np.random.default_rng(10)
    for axis in (1, 2, 3, -1):
        shape = random_shape(rng)
        out = {"shape": tuple(np.delete(shape, axis).tolist()), "dtype": "int32"}
        inputs = [described(shape, (scale(rng), zero_point(rng))), integers([axis])]
        data = network(kind(), inputs, [out])
        # few codes: the first of equal ones counts
        check(data, [codes(rng, (4, *shape[1:])) >> 6])


@pytest.mark.parametrize("activation", ["NONE", "RELU"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transpose_conv(padding: str, activation: str) -> None:
    rng = np.random.default_rng(11)
    for trial in range(40):
        kernel, stride = rng.integers(1, 6, 2).tolist(), rng.integers(1, 4, 2).tolist()
        _, height, width, channels = random_shape(rng, largest=6)
        filters = int(rng.integers(1, 6))
        rest = [int(rng.integers(0, step)) for step in stride]
        if padding == "SAME":
            out = [n * s - r for n, s, r in zip((height, width), stride, rest, strict=True)]
        else:
            sides = zip((height, width), stride, kernel, rest, strict=True)
            out = [(n - 1) * s + k + r for n, s, k, r in sides]
        if min(out) < 1:
            continue
        counts = filters if trial % 2 and filters > 1 else 1
        weight_scale = 2.0 ** rng.uniform(-9, -5, counts)
        source = scale(rng, -6, 0)
        weights = codes(rng, (filters, *kernel, channels))
        axis = 0 if counts > 1 else None
        spread = 74 * 74 * np.sqrt(np.prod(kernel) * channels) / 60
        top = source * weight_scale[0] * spread * scale(rng, -2, 1), zero_point(rng)
        inputs = [
            integers([1, *out, filters]),
            {"shape": weights.shape, "scale": weight_scale, "axis": axis, "data": weights},
            described((1, height, width, channels), (source, zero_point(rng))),
        ]
        if trial % 3:
            inputs.append(integers(rng.integers(-20000, 20000, filters)) | {"scale": 1.0})
        operator = ops.TransposeConv(
            stride=(stride[0], stride[1]), padding=padding, activation=activation
        )
        data = network(operator, inputs, [described((1, *out, filters), top)])
        program = check(data, [codes(rng, (2, height, width, channels))])
        if stride[0] == stride[1]:
            why = program.layers[0].why
            assert program.layers[0].operator == "conv2d"
            assert why.startswith("array") or "requantiser" in why or "slice" in why, why


def test_shifted_weights_of_fully_connected() -> None:
    rng = np.random.default_rng(12)
    for _ in range(30):
        inputs, outputs = int(rng.integers(1, 40)), int(rng.integers(1, 9))
        weights = described(
            (outputs, inputs),
            (scale(rng, -9, -5), zero_point(rng)),
            data=codes(rng, (outputs, inputs)),
        )
        top = 0.05 * weights["scale"] * 74 * 74 * np.sqrt(inputs) / 60, zero_point(rng)
        tensors = [described((1, inputs), (0.05, zero_point(rng))), weights]
        data = network(first.FullyConnected(), tensors, [described((1, outputs), top)])
        check(data, [codes(rng, (3, inputs))])


@pytest.mark.parametrize("shape", [(1, 1, 5000, 3), (1, 9000, 1), (1, 1, 1, 17000)])
def test_longer_than_an_instruction_counts(shape: tuple[int, ...]) -> None:
    same = 0.1, 3
    tensors = [described(shape, same)], [described(shape, same)]
    data = network(functions.LeakyRelu(alpha=0.5), *tensors)
    program = check(data, [codes(np.random.default_rng(19), (1, *shape[1:]))])
    assert "exceed an instruction (4095)" in program.layers[0].why

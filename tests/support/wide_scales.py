"""Networks of one operator whose scales are any that float32 can say."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as moves
from slipstick.writers import tflite_operators as basic
from tflm_cases import ACTIVATIONS, codes, zero_point
from tflm_networks import Described, described, integers, network

Case = tuple[bytes, tuple[np.ndarray, ...]]
"""A file and its inputs."""

EVERY_CODE = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
PICTURE = (1, 5, 4, 3)


def wide_scale(rng: Generator) -> float:
    """Within 1e-9..1e9, seldom a far border of float32."""
    if rng.random() < 0.05:
        return float(rng.choice([1e-30, 1e30, 1.2e-38, 3e38, 1e-40]))
    return float(10 ** rng.uniform(-9, 9))


def near(rng: Generator, real: float) -> float:
    """About a scale, two thirds of the time; else any."""
    if rng.random() < 0.35:
        return wide_scale(rng)
    spread = float(rng.choice([2.0, 12.0, 40.0]))
    return float(np.clip(real * 2 ** rng.uniform(-spread, spread), 1e-30, 1e30))


def _tensor(rng: Generator, shape: tuple[int, ...], scale: float, **more: Any) -> Described:
    return described(shape, (scale, zero_point(rng)), **more)


def _one(rng: Generator, shape: tuple[int, ...], operator: basic.Operator) -> Case:
    """A function of one code between any scales."""
    scale = wide_scale(rng)
    x, y = _tensor(rng, shape, scale), _tensor(rng, shape, near(rng, scale))
    inputs = EVERY_CODE if shape == EVERY_CODE.shape else codes(rng, (3, *shape[1:]))
    return network(operator, [x], [y]), (inputs,)


def function(make: Callable[[Generator], basic.Operator]) -> Callable[[Generator], Case]:
    """Networks of a function of one code."""
    return lambda rng: _one(rng, EVERY_CODE.shape, make(rng))


def fixed(operator: basic.Operator, scale: float, point: int) -> Callable[[Generator], Case]:
    """Networks of an operator whose output's scale is given."""

    def made(rng: Generator) -> Case:
        shape = EVERY_CODE.shape
        source = float(10 ** rng.uniform(-9, 9)) if rng.random() < 0.5 else near(rng, 0.1)
        x = _tensor(rng, shape, source)
        y = described(shape, (scale, point))
        wide = np.concatenate([EVERY_CODE, codes(rng, (2, 256))])
        return network(operator, [x], [y]), (wide,)

    return made


def layer(kind: str) -> Callable[[Generator], Case]:
    """Networks of a convolution or a fully connected layer."""

    def made(rng: Generator) -> Case:
        activation = str(rng.choice(ACTIVATIONS))
        filters = 6 if kind == "depthwise" else int(rng.integers(1, 5))
        shape, axis = {
            "depthwise": ((1, 3, 2, filters), 3),
            "fully_connected": ((filters, 7), 0),
        }.get(kind, ((filters, 3, 2, 3), 0))
        source = wide_scale(rng)
        counts = filters if rng.random() < 0.5 else 1
        weight = wide_scale(rng)
        scales = np.clip(weight * 2.0 ** rng.uniform(-20, 20, counts), 1e-38, 3e38)
        data = codes(rng, shape) // int(rng.choice([1, 64]))
        weights = {
            "shape": shape, "scale": scales, "axis": axis if counts > 1 else None, "data": data,
        }  # fmt: skip
        result = near(rng, min(max(source * weight * 1000, 1e-38), 3e38))
        size = int(rng.choice([100, 1 << 20, (1 << 31) - 1]))
        bias = {"shape": (filters,), "dtype": "int32", "data": rng.integers(-size, size, filters)}
        if counts == 1:
            bias["scale"] = float(np.clip(source * scales[0], 1e-38, 3e38))
        inputs = [weights, bias] if rng.random() < 0.7 else [weights]
        if kind == "fully_connected":
            x, y = _tensor(rng, (1, 7), source), _tensor(rng, (1, filters), result)
            operator: basic.Operator = basic.FullyConnected(activation=activation)
        else:
            x = _tensor(rng, PICTURE, source)
            y = _tensor(rng, (*PICTURE[:3], filters), result)
            operator = basic.Conv2D(activation=activation)
        if kind == "depthwise":
            operator = basic.DepthwiseConv2D(activation=activation, multiplier=2)
        if kind == "transpose":
            operator = moves.TransposeConv(activation=activation)
            return network(operator, [integers(y["shape"]), weights, x, *inputs[1:]], [y]), (
                codes(rng, (2, *x["shape"][1:])),
            )
        return network(operator, [x, *inputs], [y]), (codes(rng, (2, *x["shape"][1:])),)

    return made


def pair(
    kind: Callable[..., basic.Operator], power: int, *, activated: bool = True
) -> Callable[[Generator], Case]:
    """Networks of two operands, whose result is about a scale to this power."""

    def made(rng: Generator) -> Case:
        first = wide_scale(rng)
        second = near(rng, first)
        top = near(rng, float(np.clip(max(first, second) ** power, 1e-30, 1e30)))
        options = {"activation": str(rng.choice(ACTIVATIONS))} if activated else {}
        a, b = _tensor(rng, PICTURE, first), _tensor(rng, PICTURE, second)
        inputs = [codes(rng, (3, *PICTURE[1:]))]
        if rng.random() < 0.3:
            b = {**b, "shape": (1,), "data": codes(rng, (1,))}
        else:
            inputs.append(codes(rng, (3, *PICTURE[1:])))
        return network(kind(**options), [a, b], [_tensor(rng, PICTURE, top)]), tuple(inputs)

    return made


def prelu(rng: Generator) -> Case:
    """A network of PRELU."""
    source, slope = wide_scale(rng), near(rng, 0.01)
    alpha = _tensor(rng, (1, 1, 1, 3), slope, data=codes(rng, (1, 1, 1, 3)))
    y = _tensor(rng, PICTURE, near(rng, source))
    x = _tensor(rng, PICTURE, source)
    return network(functions.Prelu(), [x, alpha], [y]), (codes(rng, (3, *PICTURE[1:])),)


def matmul(rng: Generator) -> Case:
    """A network of BATCH_MATMUL."""
    first = wide_scale(rng)
    second = near(rng, 0.1)
    top = near(rng, float(np.clip(first * second * 100, 1e-30, 1e30)))
    a, b = _tensor(rng, (1, 4, 5), first), _tensor(rng, (1, 5, 3), second)
    data = network(functions.BatchMatMul(), [a, b], [_tensor(rng, (1, 4, 3), top)])
    return data, (codes(rng, (2, 4, 5)), codes(rng, (2, 5, 3)))


def reduction(kind: type[basic.Mean] | type[functions.Sum]) -> Callable[[Generator], Case]:
    """Networks of MEAN or SUM."""

    def made(rng: Generator) -> Case:
        scale = wide_scale(rng)
        x, y = _tensor(rng, PICTURE, scale), _tensor(rng, (1, 3), near(rng, scale))
        return network(kind(), [x, integers([1, 2])], [y]), (codes(rng, (3, *PICTURE[1:])),)

    return made


def pool(rng: Generator) -> Case:
    """A network of AVERAGE_POOL_2D or MAX_POOL_2D."""
    kind = [basic.AveragePool2D, basic.MaxPool2D][int(rng.integers(2))]
    x = _tensor(rng, PICTURE, wide_scale(rng))
    y = {**x, "shape": (1, 4, 3, 3)}
    operator = kind(window=(2, 2), stride=(1, 1), activation=str(rng.choice(ACTIVATIONS)))
    return network(operator, [x], [y]), (codes(rng, (3, *PICTURE[1:])),)


def rsqrt(rng: Generator) -> Case:
    """A network of RSQRT, which the reference runs for no code below the zero point."""
    scale = wide_scale(rng)
    x = _tensor(rng, EVERY_CODE.shape, scale)
    y = _tensor(rng, EVERY_CODE.shape, near(rng, scale**-0.5 / 100))
    inputs = np.maximum(EVERY_CODE, x["zero_point"]).astype(np.int8)
    return network(functions.Rsqrt(), [x], [y]), (inputs,)


def to_codes(rng: Generator) -> Case:
    """A network of QUANTIZE from float32."""
    scale = wide_scale(rng)
    values = rng.normal(0, 1, (3, 256)) * near(rng, scale * 60)
    # the reference's codes are 32 bits before they are clamped
    values = np.clip(values, -(2.0**30) * scale, 2.0**30 * scale)
    y = _tensor(rng, EVERY_CODE.shape, scale)
    x = {"shape": EVERY_CODE.shape, "dtype": "float32"}
    return network(basic.Quantize(), [x], [y]), (values.astype(np.float32),)


def to_real(rng: Generator) -> Case:
    """A network of DEQUANTIZE."""
    x = _tensor(rng, EVERY_CODE.shape, wide_scale(rng))
    y = {"shape": EVERY_CODE.shape, "dtype": "float32"}
    return network(basic.Dequantize(), [x], [y]), (EVERY_CODE,)


def _leaky(rng: Generator) -> basic.Operator:
    alpha = float(rng.choice([0.0, 0.1, -0.3, 1e-9, 1e5, -1e5, float(rng.uniform(-2, 2))]))
    return functions.LeakyRelu(alpha=alpha)


def _softmax(rng: Generator) -> Case:
    beta = float(rng.choice([1.0, 1.0, 1e-6, 1e6, float(10 ** rng.uniform(-9, 9))]))
    return fixed(basic.Softmax(beta=beta), 1 / 256, -128)(rng)


CASES: Mapping[str, Callable[[Generator], Case]] = {
    "CONV_2D": layer("conv"),
    "DEPTHWISE_CONV_2D": layer("depthwise"),
    "TRANSPOSE_CONV": layer("transpose"),
    "FULLY_CONNECTED": layer("fully_connected"),
    "ADD": pair(basic.Add, 1),
    "SUB": pair(functions.Sub, 1),
    "MUL": pair(functions.Mul, 2),
    "SQUARED_DIFFERENCE": pair(functions.SquaredDifference, 2, activated=False),
    "PRELU": prelu,
    "BATCH_MATMUL": matmul,
    "MEAN": reduction(basic.Mean),
    "SUM": reduction(functions.Sum),
    "pools": pool,
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": fixed(functions.LogSoftmax(), 1 / 16, 127),
    "LOGISTIC": fixed(basic.Logistic(), 1 / 256, -128),
    "TANH": fixed(basic.Tanh(), 1 / 128, 0),
    "HARD_SWISH": function(lambda rng: basic.HardSwish()),
    "LEAKY_RELU": function(_leaky),
    "ELU": function(lambda rng: functions.Elu()),
    "ABS": function(lambda rng: functions.Abs()),
    "RSQRT": rsqrt,
    "RELU": function(lambda rng: basic.Relu()),
    "QUANTIZE": function(lambda rng: basic.Quantize()),
    "QUANTIZE float32": to_codes,
    "DEQUANTIZE": to_real,
}
"""Networks of each operator that has scales to compute with."""

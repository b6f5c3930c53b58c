"""Activations: functions of one code as 256-entry tables, and SOFTMAX in gemmlowp's fixed point."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Quantization
from ...operators import OPERATORS, Attributes, Unary
from . import fixed_point
from .roots import rsqrt
from .scaling import (
    activation_range,
    mantissa_and_shift,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scalar,
)

INPUT_BITS = 4
"""Integer bits with which LOGISTIC and TANH read their input: it saturates at 16."""

EXPONENT_BITS = 5
"""Integer bits of SOFTMAX's differences from the largest code: beyond 32 the result is 0."""

SUM_BITS = 12
"""Integer bits of SOFTMAX's sum of exponentials."""

Pair = tuple[float, int]
"""Scale and zero point."""


def activation_table(
    operator: str,
    input_quantization: Quantization,
    output_quantization: Quantization,
    attributes: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Tabulates what an operator makes of each int8 code.

    Parameters
    ----------
    operator : str
        A function of one number, or "quantize", the requantisation of int8 to int8.
    input_quantization, output_quantization : Quantization
        One scale and zero point each.
    attributes : mapping, optional
        The node's.

    Returns
    -------
    array of int8, 256
        Entry x + 128 belongs to the code x.

    Raises
    ------
    ValueError
        If the operator is unknown or a quantisation is one a channel.

    Notes
    -----
    Every table is tflm's but for "relu6" between two quantisations: tflm copies the codes as if
    there were one, and this rescales them, as TensorFlow Lite does; and for a "hard_swish" whose
    output scale is over 2^9 input scales: it is 0 throughout, but tflm's 16-bit shift overflows.
    """
    function = OPERATORS.get(operator)
    if function is None or not (function.tabulated or isinstance(function, Unary)):
        known = tuple(each.name for each in OPERATORS.values() if each.tabulated)
        raise ValueError(f"operator must be one of {known}, not {operator!r}")
    source, target = scalar(input_quantization), scalar(output_quantization)
    codes = np.arange(-128, 128, dtype=np.int64)
    if operator in _OWN:
        return _OWN[operator](codes, source, target, attributes or {})
    if not isinstance(function, Unary) or function.clamp is not None:
        activation = "none" if operator == "quantize" else operator
        return rescale(codes, source, target, activation).astype(np.int8)
    return _rounded(function(_real(codes, source), attributes or {}), target)


def rescale(
    codes: np.ndarray,
    source: Pair,
    target: Pair,
    activation: str = "none",
    dtype: str = "int8",
) -> np.ndarray:
    """Codes of one (scale, zero point) as codes of another, through a clamp; int64."""
    multiplier, shift = quantize_multiplier(source[0] / target[0])
    value = multiply_by_quantized_multiplier(codes - source[1], multiplier, shift) + target[1]
    return np.clip(value, *activation_range(activation, *target, dtype))


def _real(codes: np.ndarray, source: Pair) -> np.ndarray:
    return np.float32(source[0]) * (codes - source[1]).astype(np.float32)


def _rounded(value: np.ndarray, target: Pair) -> np.ndarray:
    """Codes of float32 numbers, ties away from zero; NaN becomes the zero point."""
    value = value * (np.float32(1) / np.float32(target[0]))
    rounded = np.copysign(np.floor(np.abs(value).astype(np.float64) + 0.5), value)
    return np.clip(np.nan_to_num(rounded) + target[1], -128, 127).astype(np.int8)


def _logistic(codes: np.ndarray, source: Pair, target: Pair, _: Attributes) -> np.ndarray:
    value = _sigmoidal(codes, source, fixed_point.logistic, 23)
    return np.clip(value - 128, -128, 127).astype(np.int8)


def _tanh(codes: np.ndarray, source: Pair, target: Pair, _: Attributes) -> np.ndarray:
    return np.clip(_sigmoidal(codes, source, fixed_point.tanh, 24), -128, 127).astype(np.int8)


def _sigmoidal(
    codes: np.ndarray,
    source: Pair,
    function: Callable[[np.ndarray, int], np.ndarray],
    drop: int,
) -> np.ndarray:
    """A function with limits at both ends, its result rounded to 31 - drop fraction bits."""
    scale, zero_point = source
    multiplier, shift = quantize_multiplier(scale * (1 << (31 - INPUT_BITS)))
    centred = codes - zero_point
    raw = multiply_by_quantized_multiplier(centred, multiplier, shift)
    value = fixed_point.divide_by_power_of_two(function(raw, INPUT_BITS), drop)
    # beyond the radius the raw number would overflow: the function is at its limit there
    radius = input_radius(INPUT_BITS, shift)
    limit = 1 << (31 - drop)
    low = 0 if function is fixed_point.logistic else -limit
    return np.select([centred <= -radius, centred >= radius], [low, limit], value)


def input_radius(integer_bits: int, left_shift: int) -> int:
    """The largest input that a left shift keeps within a number of ``integer_bits``."""
    largest = ((1 << integer_bits) - 1) * (1 << (31 - integer_bits))
    return math.floor(largest / 2.0**left_shift)


def _hard_swish(codes: np.ndarray, source: Pair, target: Pair, _: Attributes) -> np.ndarray:
    """x x relu6(x + 3) / 6 in 16-bit fixed point."""
    scale = np.float32(source[0]) * np.float32(1 / 128)
    multiplier, exponent = _short_multiplier(float(scale / np.float32(target[0])))
    slope, slope_exponent = _short_multiplier(float(scale / np.float32(3 / 32768)))
    value = (codes - source[1]) << 7
    relu = value
    if slope_exponent > 0:
        relu = _saturate_short(relu << (slope_exponent - 1))
    relu = _multiply_short(relu, slope)
    if slope_exponent > 0:
        relu = _saturate_short(relu << 1)
    if slope_exponent < 0:
        relu = fixed_point.divide_by_power_of_two(relu, -slope_exponent)
    relu = (relu + (1 << 15)) >> 1
    product = relu * _multiply_short(value, multiplier)
    # this one product is truncated, not rounded
    product = np.sign(product) * (np.abs(product) >> 15)
    result = fixed_point.divide_by_power_of_two(product, -exponent) + target[1]
    return np.clip(result, -128, 127).astype(np.int8)


def _leaky_relu(
    codes: np.ndarray, source: Pair, target: Pair, attributes: Attributes
) -> np.ndarray:
    """x where it is positive, alpha x where it is not; alpha is a float32."""
    slope = source[0] * float(np.float32(attributes["alpha"])) / target[0]
    centred = codes - source[1]
    straight = multiply_by_quantized_multiplier(
        centred, *quantize_multiplier(source[0] / target[0])
    )
    # the sign of the factor goes to the code: its mantissa has none
    bent = multiply_by_quantized_multiplier(
        centred if slope >= 0 else -centred, *quantize_multiplier(abs(slope))
    )
    value = np.where(centred >= 0, straight, bent) + target[1]
    return np.clip(value, -128, 127).astype(np.int8)


def _elu(codes: np.ndarray, source: Pair, target: Pair, _: Attributes) -> np.ndarray:
    """x where it is positive, exp(x) - 1 where it is not, in float32."""
    real = _real(codes, source)
    # NumPy's float32 exponential depends on the machine
    power = np.exp(np.minimum(real, 0).astype(np.float64)).astype(np.float32)
    return _rounded(np.where(real < 0, power - np.float32(1), real), target)


def _absolute(codes: np.ndarray, source: Pair, target: Pair, _: Attributes) -> np.ndarray:
    return rescale(np.abs(codes - source[1]), (source[0], 0), target).astype(np.int8)


def _short_multiplier(real: float) -> tuple[int, int]:
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturate_short(value: np.ndarray) -> np.ndarray:
    return np.clip(value, -(1 << 15), (1 << 15) - 1)


def _multiply_short(a: np.ndarray, b: int) -> np.ndarray:
    return (a * b + (1 << 14)) >> 15


_OWN: Mapping[str, Callable[[np.ndarray, Pair, Pair, Attributes], np.ndarray]] = {
    "abs": _absolute,
    "elu": _elu,
    "hard_swish": _hard_swish,
    "leaky_relu": _leaky_relu,
    "logistic": _logistic,
    "rsqrt": lambda codes, source, target, _: rsqrt(codes, source, target),
    "tanh": _tanh,
}
"""Functions whose table the reference computes in a way of its own. Of the others each number is
computed in float32 and rounded."""


def softmax(x: np.ndarray, quantization: Quantization, beta: float) -> np.ndarray:
    """exp(beta x) over the sum of it along the last axis.

    Parameters
    ----------
    x : array of int8
    quantization : Quantization
        The input's.
    beta : float

    Returns
    -------
    array of int8, of scale 1/256 and zero point -128
    """
    factor = float(np.float32(beta)) * scalar(quantization)[0] * (1 << (31 - EXPONENT_BITS))
    multiplier, shift = mantissa_and_shift(min(factor, float(fixed_point.LIMIT)))
    codes = x.astype(np.int64)
    difference = codes - codes.max(axis=-1, keepdims=True)
    counts = difference >= -input_radius(EXPONENT_BITS, shift)
    # what does not count would overflow: it is left out before it is rescaled
    raw = multiply_by_quantized_multiplier(np.where(counts, difference, 0), multiplier, shift)
    powers = fixed_point.exponential(raw, EXPONENT_BITS)
    terms = np.where(counts, fixed_point.divide_by_power_of_two(powers, SUM_BITS), 0)
    inverse, exponent = fixed_point.reciprocal(terms.sum(axis=-1, keepdims=True), SUM_BITS)
    value = fixed_point.multiply(powers, inverse)
    value = fixed_point.divide_by_power_of_two(value, exponent + 31 - 8) - 128
    return np.where(counts, np.clip(value, -128, 127), -128).astype(np.int8)

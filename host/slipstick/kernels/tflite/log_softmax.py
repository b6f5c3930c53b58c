"""LOG_SOFTMAX in gemmlowp's fixed point."""

import numpy as np

from ...graph import Quantization
from . import fixed_point
from .activation import EXPONENT_BITS, SUM_BITS, input_radius
from .fixed_point import LIMIT, divide_by_power_of_two, multiply, saturate
from .scaling import (
    mantissa_and_shift,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scalar,
)

OUTPUT_BITS = 4
"""Integer bits of the result, of scale 16/256: it ends at -16."""

_LOG_2 = 1488522236
_HALF_ROOT = 1518500250
_HALF_FOURTH_ROOT = 1805811301
_QUARTER = 536870912
_NUMERATOR = 117049297
_DENOMINATOR = (1057819769, 127690142, 638450708)


def log_softmax(x: np.ndarray, quantization: Quantization) -> np.ndarray:
    """x less the logarithm of the sum of exp(x) along the last axis.

    Parameters
    ----------
    x : array of int8
    quantization : Quantization
        The input's.

    Returns
    -------
    array of int8, of scale 16/256 and zero point 127
    """
    factor = scalar(quantization)[0] * (1 << (31 - EXPONENT_BITS))
    multiplier, shift = mantissa_and_shift(min(factor, float(LIMIT)))
    codes = x.astype(np.int64)
    difference = codes - codes.max(axis=-1, keepdims=True)
    lowest = -input_radius(EXPONENT_BITS, shift)
    counts = difference >= lowest
    raw = multiply_by_quantized_multiplier(np.where(counts, difference, 0), multiplier, shift)
    powers = fixed_point.exponential(raw, EXPONENT_BITS)
    terms = np.where(counts, divide_by_power_of_two(powers, SUM_BITS), 0)
    logarithm = _logarithm(terms.sum(axis=-1, keepdims=True))
    # what would leave the fixed-point range is the smallest code
    back, back_shift = quantize_multiplier(2.0 ** (31 - shift) / multiplier)
    border = multiply_by_quantized_multiplier(logarithm - LIMIT - 1, back, back_shift)
    shown = difference > np.maximum(lowest - 1, border)
    value = divide_by_power_of_two(raw - logarithm, 31 - EXPONENT_BITS - OUTPUT_BITS) + 127
    return np.where(shown, np.clip(value, -128, 127), -128).astype(np.int8)


def _bits(value: np.ndarray) -> np.ndarray:
    """Leading zeros of 32-bit integers above 0."""
    return 32 - np.frexp(value.astype(np.float64))[1].astype(np.int64)


def _logarithm(raw: np.ndarray) -> np.ndarray:
    """log of numbers >= 1 with ``SUM_BITS`` integer bits; result with ``EXPONENT_BITS``.

    The number is z x 2^n with z about one; log z is a rational function of it. Of two such n,
    half a step apart, the one whose z is the smaller serves.
    """
    accumulator_bits = EXPONENT_BITS + 1
    quarter = divide_by_power_of_two(np.array(_QUARTER), accumulator_bits)

    def power(count: np.ndarray) -> np.ndarray:
        return saturate(count << (31 - accumulator_bits))

    headroom = _bits(raw)
    near = saturate(multiply(saturate(raw << np.maximum(headroom - 1, 0)), _HALF_ROOT) << 1)
    exponent = saturate(power(SUM_BITS - headroom) + quarter)
    other_headroom = _bits(multiply(raw, _HALF_ROOT)) - 1
    far = saturate(raw << other_headroom)
    other_exponent = saturate(power(SUM_BITS - other_headroom) - quarter)
    r = np.minimum(near, far)
    exponent = np.maximum(exponent, other_exponent)
    total = r + _HALF_FOURTH_ROOT
    p = np.sign(total) * ((np.abs(total) + 1) // 2)
    q = 2 * (r - _HALF_FOURTH_ROOT)
    square = multiply(q, q)
    numerator = multiply(q, r) + multiply(multiply(q, square), _NUMERATOR)
    first, second, third = _DENOMINATOR
    denominator = multiply(p, first + q + multiply(square, second)) + multiply(q, third)
    inverse = fixed_point.reciprocal_of_one_plus(denominator)
    scaled = divide_by_power_of_two(numerator, accumulator_bits)
    return saturate((multiply(exponent, _LOG_2) + multiply(scaled, inverse)) << 1)

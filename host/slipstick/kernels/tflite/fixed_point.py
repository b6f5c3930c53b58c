"""Fixed-point functions on 32-bit integers as gemmlowp defines them, element by element.

A number with n integer bits is an int32 ``raw`` that stands for raw / 2^(31 - n). Arrays here are
int64 and hold values of the int32 range.
"""

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift, requantize

LIMIT = (1 << 31) - 1
ONE = LIMIT
"""1.0 with no integer bits, saturated."""

_NO_SHIFT = encode_shift(Rounding.DOUBLE, 0)
_FORTY_EIGHT_SEVENTEENTHS = 1515870810
_MINUS_THIRTY_TWO_SEVENTEENTHS = -1010580540
_EXPONENTIALS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""(k, exp(-2^k) with no integer bits)."""


def saturate(value: np.ndarray) -> np.ndarray:
    """The nearest int32."""
    return np.clip(value, -LIMIT - 1, LIMIT)


def multiply(a: np.ndarray | int, b: np.ndarray | int) -> np.ndarray:
    """Product of two raws, of the first one's shape: the integer bits add up.

    Both factors are never -2^31 here, the only case in which gemmlowp saturates.
    """
    return requantize(a, 0, b, _NO_SHIFT, Rounding.DOUBLE)


def divide_by_power_of_two(value: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    """value / 2^exponent, ties away from zero."""
    exponent = np.asarray(exponent, dtype=np.int64)
    half = (np.int64(1) << exponent) >> 1
    return (value + half - ((value < 0) & (exponent > 0))) >> exponent


def shift_left(value: np.ndarray, places: int) -> np.ndarray:
    """value x 2^places, saturated."""
    return saturate(value << places)


def exponential(raw: np.ndarray, integer_bits: int) -> np.ndarray:
    """exp of numbers <= 0 with ``integer_bits`` (at most 5) integer bits; result with none."""
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    # raw = remainder in [-1/4, 0) less a multiple of 1/4, whose bits pick the factors
    remainder = (raw & (quarter - 1)) - quarter
    multiples = remainder - raw
    result = _exponential_of_quarter(shift_left(remainder, integer_bits))
    for exponent, factor in _EXPONENTIALS:
        if exponent < integer_bits:
            chosen = multiples & (1 << (fraction_bits + exponent)) != 0
            result = np.where(chosen, multiply(result, factor), result)
    return np.where(raw == 0, ONE, result)


def _exponential_of_quarter(raw: np.ndarray) -> np.ndarray:
    """exp on [-1/4, 0), no integer bits: a Taylor series about -1/8."""
    constant, third = 1895147668, 715827883
    x = raw + (1 << 28)
    square = multiply(x, x)
    cube = multiply(square, x)
    fourth = divide_by_power_of_two(multiply(square, square), 2)
    tail = divide_by_power_of_two(multiply(fourth + cube, third) + square, 1)
    return saturate(constant + multiply(constant, x + tail))


def _newton_reciprocal(raw: np.ndarray) -> np.ndarray:
    """2 / (1 + x) for x in [0, 1) without integer bits; result with 2 integer bits."""
    half_denominator = (raw + ONE + 1) >> 1
    one = 1 << 29
    x = _FORTY_EIGHT_SEVENTEENTHS + multiply(half_denominator, _MINUS_THIRTY_TWO_SEVENTEENTHS)
    for _ in range(3):
        correction = multiply(x, one - multiply(half_denominator, x))
        x = x + shift_left(correction, 2)
    return x


def reciprocal_of_one_plus(raw: np.ndarray) -> np.ndarray:
    """1 / (1 + x) for x in [0, 1); no integer bits on either side."""
    # 2 / (1 + x) with 2 integer bits reads as 1 / (1 + x) with 1
    return shift_left(_newton_reciprocal(raw), 1)


def one_minus_over_one_plus(raw: np.ndarray) -> np.ndarray:
    """(1 - x) / (1 + x) for x in [0, 1); no integer bits on either side."""
    return shift_left(_newton_reciprocal(raw) - (1 << 29), 2)


def reciprocal(raw: np.ndarray, integer_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """1 / raw for raw > 0 as (number without integer bits, right shift that belongs to it)."""
    # frexp is exact on 31-bit integers, and counts the bits
    bits = np.frexp(raw.astype(np.float64))[1].astype(np.int64)
    headroom = 32 - bits
    fraction = (raw << headroom) - (1 << 31)
    return reciprocal_of_one_plus(fraction), integer_bits - headroom


def logistic(raw: np.ndarray, integer_bits: int) -> np.ndarray:
    """1 / (1 + exp(-x)), result without integer bits."""
    positive = reciprocal_of_one_plus(exponential(-np.abs(raw), integer_bits))
    return np.select([raw > 0, raw < 0], [positive, ONE - positive], 1 << 30)


def tanh(raw: np.ndarray, integer_bits: int) -> np.ndarray:
    """Hyperbolic tangent, result without integer bits."""
    # exp(-2|x|): one integer bit more reads as twice the number
    magnitude = one_minus_over_one_plus(exponential(-np.abs(raw), integer_bits + 1))
    return np.sign(raw) * magnitude

"""Conversions between logarithmic numbers and float, int8 with a scale, and fixed point.

Into a logarithmic format a value goes to the nearest e, as its logarithm has it: correctly rounded,
for every float64. No float lies on a tie, as 2^((e + 1/2) / 2^F) is irrational for F >= 0. Values
beyond the largest magnitude, infinities among them, saturate; those whose e would be below the
smallest are zero; NaN is an error. Out of it, results are correctly rounded to the linear type.
"""

import math
from decimal import Context, Decimal
from functools import cache
from typing import Any

import numpy as np

from ..formats import Lns

_DOUBTFUL = 2.0**-28
"""Ulps: logarithms in float64 that are nearer to a tie are computed anew with more digits. They err
by less than 2^-50 of a unit, which is 2^-31 ulp where F is 19."""

_CONTEXT = Context(prec=60)
_LARGEST_EXACT = 1 << 53
"""Integers up to here are floats."""

_SIGNIFICAND_PLACES = 61


def from_float(lns: Lns, values: Any) -> np.ndarray:
    """Ordered codes, int32, of float32 or float64 values.

    Raises
    ------
    ValueError
        If one of them is NaN.
    """
    values = np.asarray(values, np.float64)
    if np.isnan(values).any():
        raise ValueError(f"a number must be no NaN to be converted to {lns.name}")
    steps = 1 << lns.fraction_bits
    mantissa, exponent = np.frexp(np.abs(np.where(np.isfinite(values), values, 1)))
    # the integer part is left out of the logarithm, for its digits' sake
    fraction = np.log2(np.where(mantissa == 0, 1, mantissa)) * steps
    nearest = np.rint(fraction)
    doubtful = np.abs(np.abs(fraction - nearest) - 0.5) < _DOUBTFUL
    for index in np.argwhere(doubtful & (mantissa != 0)):
        place = tuple(index)
        nearest[place] = _nearest(float(mantissa[place]), steps)
    magnitude = nearest.astype(np.int64) + (exponent.astype(np.int64) << lns.fraction_bits)
    magnitude = np.clip(magnitude - lns.zero, 0, lns.largest_code)
    magnitude = np.where(values == 0, 0, np.where(np.isinf(values), lns.largest_code, magnitude))
    return (np.sign(values) * magnitude).astype(np.int32)


def _nearest(mantissa: float, steps: int) -> int:
    """The logarithm in ulps, rounded, with 60 digits."""
    number = Decimal(mantissa)
    logarithm = _CONTEXT.divide(_CONTEXT.ln(number), _CONTEXT.ln(Decimal(2)))
    return int(_CONTEXT.multiply(logarithm, Decimal(steps)).to_integral_value())


@cache
def _significands(fraction_bits: int) -> np.ndarray:
    """floor(2^(f / 2^F) * 2^61) of each f below 2^F, int64, odd where it is not exact.

    The odd last bit stands for all that was cut off: rounding to fewer bits is then correct.
    """
    places = 128
    table, root = [1 << places], 2 << places
    for _ in range(fraction_bits):
        root = math.isqrt(root << places)
        table = [entry for low in table for entry in (low, low * root >> places)]
    cut = places - _SIGNIFICAND_PLACES
    significands = np.array([entry >> cut for entry in table], np.int64)
    significands[1:] |= 1
    significands.flags.writeable = False
    return significands


def _split(lns: Lns, codes: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signs (-1, 0, 1), integer parts of the logarithms, and significands of their fractions."""
    codes = np.asarray(codes, np.int64)
    exponent = np.abs(codes) + lns.zero
    fraction = exponent & (1 << lns.fraction_bits) - 1
    return np.sign(codes), exponent >> lns.fraction_bits, _significands(lns.fraction_bits)[fraction]


def to_float(lns: Lns, codes: Any, dtype: Any = np.float64) -> np.ndarray:
    """Values of ordered codes.

    Parameters
    ----------
    lns : Lns
    codes : array of int
    dtype : np.float64 or np.float32

    Returns
    -------
    array of ``dtype``
        Correctly rounded; below its normal numbers once more, beyond its largest infinite.
    """
    sign, whole, significand = _split(lns, codes)
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(significand.astype(dtype), (whole - _SIGNIFICAND_PLACES).astype(np.int32))
    return (values * sign.astype(dtype)).astype(dtype)


def from_int8(lns: Lns, codes: Any, scale: Any, zero_point: Any = 0) -> np.ndarray:
    """Ordered codes of (code - zero_point) * scale; the product is exact for float32 scales."""
    return from_float(lns, (np.asarray(codes, np.int64) - zero_point) * np.asarray(scale, float))


def to_int8(lns: Lns, codes: Any, scale: Any, zero_point: Any = 0) -> np.ndarray:
    """value / scale in float64, half to even, + zero_point, saturated: int8."""
    quotients = np.rint(to_float(lns, codes) / np.asarray(scale, np.float64))
    return np.clip(quotients + zero_point, -128, 127).astype(np.int8)


def from_fixed(lns: Lns, values: Any, places: int) -> np.ndarray:
    """Ordered codes of values / 2^places.

    Raises
    ------
    ValueError
        If a value is beyond 2^53.
    """
    values = np.asarray(values, np.int64)
    if values.size and max(abs(int(values.min())), abs(int(values.max()))) > _LARGEST_EXACT:
        raise ValueError("a fixed-point number must be within 2^+-53 to become a logarithm")
    return from_float(lns, np.ldexp(values.astype(np.float64), -places))


def to_fixed(lns: Lns, codes: Any, places: int, bits: int = 32) -> np.ndarray:
    """value * 2^places, int64, half to even, saturated to ``bits`` bits signed.

    Raises
    ------
    ValueError
        If ``bits`` is not within 2..53.
    """
    if not 2 <= bits <= 53:
        raise ValueError(f"a fixed-point number must have 2 to 53 bits, not {bits}")
    sign, whole, significand = _split(lns, codes)
    drop = np.clip(_SIGNIFICAND_PLACES - places - whole, 1, 63)
    below = np.minimum(drop, 62)
    kept, rest = significand >> below, significand & (np.int64(1) << below) - 1
    half = np.int64(1) << (below - 1)
    rounded = kept + ((rest > half) | ((rest == half) & (kept & 1 == 1)))
    # significands are below 2^62: what is dropped from bit 62 on is less than a half
    rounded = np.where(drop > 62, 0, rounded)
    limit = np.int64(1) << (bits - 1)
    large = _SIGNIFICAND_PLACES - places - whole < _SIGNIFICAND_PLACES - bits
    magnitude = np.where(large, limit, rounded)
    return np.clip(magnitude * sign, -limit, limit - 1)

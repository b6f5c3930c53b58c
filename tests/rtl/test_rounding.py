"""The requantiser's FLOAT rounding: exact float32 arithmetic, and the ties that make it differ."""

from fractions import Fraction

import numpy as np
import pytest
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import clamp, encode_shift, requantize

_SIGNIFICANT = 24
_SATURATED = 512
"""Quotients of this size saturate whatever the zero point, so that their rounding is no matter."""


def _exponent(value: Fraction) -> int:
    """L, where 2^L <= |value| < 2^(L + 1)."""
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    return exponent


def _float32(value: Fraction) -> Fraction:
    """The nearest number of 24 significant bits, ties to even."""
    if not value:
        return value
    unit = Fraction(2) ** (_exponent(value) - _SIGNIFICANT + 1)
    return round(value / unit) * unit


def _near_ties(shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums and multipliers whose products lie around ties, and around what FLOAT takes for ties.

    Half a unit of the 24th bit away from a tie the neighbourhood ends; below 1/2 that is half as
    far as above.
    """
    cases = set()
    for whole in (*range(9), *(2**k + d for k in range(3, 10) for d in (-2, -1, 0, 1))):
        # a power of two, so that the sum has the product's bits as far down as 32 allow
        power = max(shift + whole.bit_length() - 30, 0)
        if power > 30:
            continue
        tie = ((2 * whole + 1) << (shift - 1)) >> power
        for bits in (shift + whole.bit_length() - 1, shift - 2):
            end = max(bits - _SIGNIFICANT - power, 0)
            for distance in (0, 1 << end):
                for near in range(-2, 3):
                    cases |= {(tie + distance + near, power), (tie - distance + near, power)}
    total, power = np.array(sorted(cases), np.int64).T
    return np.concatenate([total, -total]), np.concatenate([1 << power, 1 << power])


@pytest.mark.parametrize("shift", range(24, 61))
def test_float_rounds_twice(shift: int) -> None:
    total, multiplier = _near_ties(shift)
    encoded = encode_shift(Rounding.FLOAT, shift)
    got = requantize(total, 0, multiplier, encoded, Rounding.FLOAT)
    values = [Fraction(int(t) * int(f), 1 << shift) for t, f in zip(total, multiplier, strict=True)]
    assert got.tolist() == [round(_float32(value)) for value in values]
    differing = got != requantize(total, 0, multiplier, encoded, Rounding.HALF_EVEN)
    assert differing.any() or shift < 27


@pytest.mark.parametrize("seed", range(4))
def test_float_is_half_even_but_near_ties(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = 4000
    shift = int(generator.integers(32, 54))
    multiplier = generator.integers(2**23, 2**24, count) << 7
    # sums whose products lie as near a tie as they can, or anywhere
    whole = generator.integers(-300, 300, count)
    tie = (2 * whole + 1) << (shift - 1)
    total = tie // multiplier + generator.integers(0, 2, count)
    total = np.clip(total, -(2**31), 2**31 - 1)
    encoded = encode_shift(Rounding.FLOAT, shift)
    got = requantize(total, 0, multiplier, encoded, Rounding.FLOAT)
    for t, factor, result in zip(total, multiplier, got, strict=True):
        value = Fraction(int(t) * int(factor), 1 << shift)
        if abs(value) >= _SATURATED:
            continue
        nearest_tie = round(value - Fraction(1, 2)) + Fraction(1, 2)
        reach = Fraction(2) ** (_exponent(value) - _SIGNIFICANT) if value else 0
        is_tie = abs(value - nearest_tie) <= reach
        assert result == round(nearest_tie if is_tie else value)


def test_float_saturates_without_overflow() -> None:
    total = np.array([-(2**31), 2**31 - 1])
    for shift in (24, 30, 31):
        encoded = encode_shift(Rounding.FLOAT, shift)
        rounded = requantize(total, 0, (2**24 - 1) << 7, encoded, Rounding.FLOAT)
        assert clamp(rounded, 0, -128, 127).tolist() == [-128, 127]
    one = encode_shift(Rounding.FLOAT, 62)
    assert requantize(total, 0, (2**24 - 1) << 7, one, Rounding.FLOAT).tolist() == [-1, 1]

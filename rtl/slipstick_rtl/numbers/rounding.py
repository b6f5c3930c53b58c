"""Requantisation, bit for bit: the NumPy twin of the post-processor's arithmetic."""

from typing import Any

import numpy as np

from ..isa import Rounding

FRACTION_BITS = 9
"""Fraction bits below bit 31 of the product that reach the rounding shifter; the last is sticky."""


STOCHASTIC_BITS = 8
"""Bits at most that pseudo-stochastic rounding takes for the fraction, and for chance."""


def encode_shift(rounding: Rounding, shift: int) -> int:
    """The parameter memory's shift for a right shift as mathematicians count it.

    Parameters
    ----------
    rounding : Rounding
    shift : int
        DOUBLE: the second, rounding right shift (0..31), after the doubling high multiply.
        Otherwise: the whole right shift of the product (24..62).

    Raises
    ------
    ValueError
        If the shift is out of range.
    """
    low, high = (0, 31) if rounding is Rounding.DOUBLE else (24, 62)
    if not low <= shift <= high:
        raise ValueError(f"a {rounding.name} shift must be within {low}..{high}, not {shift}")
    return shift + FRACTION_BITS if rounding is Rounding.DOUBLE else shift - 31 + FRACTION_BITS


def requantize(
    accumulator: Any, bias: Any, multiplier: Any, shift: Any, rounding: Rounding
) -> np.ndarray:
    """Rounded (accumulator + bias) x multiplier / 2^..., without zero point and clamp.

    Parameters
    ----------
    accumulator : array of int32
    bias : int32, broadcast
        The sum wraps at 32 bits.
    multiplier : int, 0 <= multiplier < 2^31, broadcast
    shift : int, broadcast
        As ``encode_shift`` gives it: 9..40 for DOUBLE, 2..40 else.
    rounding : Rounding
        With FLOAT the multiplier is a multiple of 128.

    Returns
    -------
    array of int64
        DOUBLE follows gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT, which
        TensorFlow Lite's reference kernels call; the product cannot saturate as multiplier >= 0.
    """
    # one array is worked on in place: whole networks pass through here
    total = np.add(accumulator, bias, dtype=np.int32, casting="unsafe")
    value = total.astype(np.int64)
    value *= np.asarray(multiplier, dtype=np.int64)
    shift = np.asarray(shift, dtype=np.int64)
    one = np.int64(1)
    if rounding is Rounding.DOUBLE:
        value += 1 << 30
        value >>= 31
        exponent = shift - FRACTION_BITS
        # ties away from zero: half up, less one below zero (nothing is dropped where exponent is 0)
        negative = value < 0
        value += (one << exponent) >> 1
        value -= negative & (exponent > 0)
        value >>= exponent
        return value
    drop = shift - FRACTION_BITS + 31
    if rounding is Rounding.FLOAT:
        # the cast rounds once, half to even; what it gives is below 2^39 after the shift
        return np.rint(np.ldexp(value.astype(np.float32), -drop)).astype(np.int64)
    if rounding is Rounding.HALF_EVEN:
        value += ((one << drop) >> 1) - 1 + ((value >> drop) & 1)
    else:
        value += (one << drop) >> 1
    value >>= drop
    return value


def requantize_stochastic(accumulator: Any, bias: Any, multiplier: Any, shift: Any) -> np.ndarray:
    """Rounded (accumulator + bias) / 2^shift by pseudo-stochastic rounding, sign and magnitude.

    (|accumulator| + bias) x multiplier / 2^31 is rounded up where the upper bits of what is dropped
    are more than those behind them: as many of each as ``shift`` halved and rounded up, 8 at most.
    With bias 0 that is :func:`slipstick_sim.golden.training.rounding.round_pseudo_stochastic`.

    Parameters
    ----------
    accumulator : array of int32
        -2^31 wraps.
    bias : int32, broadcast
        The sum wraps at 32 bits, and must not be negative.
    multiplier : int, broadcast
        2^(31 - shift).
    shift : int, 1..31, broadcast

    Returns
    -------
    array of int64
    """
    value = np.asarray(accumulator, np.int32)
    total = np.add(np.abs(value), bias, dtype=np.int32, casting="unsafe").astype(np.int64)
    total *= np.asarray(multiplier, np.int64)
    width = np.minimum((np.asarray(shift, np.int64) + 1) // 2, STOCHASTIC_BITS)
    places = 31 - STOCHASTIC_BITS
    mask = (1 << STOCHASTIC_BITS) - (1 << (STOCHASTIC_BITS - width))
    fraction = (total >> places) & mask
    chance = (total >> (places - width)) & mask
    magnitude = (total >> 31) + (fraction > chance)
    return np.where(value < 0, -magnitude, magnitude)


def lowest_bytes(accumulator: Any, bias: Any, multiplier: Any, shift: Any) -> np.ndarray:
    """The lowest byte of (accumulator + bias) x multiplier / 2^..., rounded down, as int8.

    Parameters
    ----------
    accumulator, bias, multiplier, shift
        As ``requantize`` has them, with HALF_EVEN.
    """
    value = np.add(accumulator, bias, dtype=np.int32, casting="unsafe").astype(np.int64)
    value *= np.asarray(multiplier, np.int64)
    return (value >> (np.asarray(shift, np.int64) - FRACTION_BITS + 31)).astype(np.int8)


def noted_bits(accumulator: Any, bias: Any, stochastic: bool, positive: bool = False) -> np.ndarray:
    """Returns a value's bits as a lane notes them: inverted if negative; int32, not negative.

    With ``stochastic`` the value is a magnitude; with ``positive`` negative ones count as 0.
    """
    value = np.asarray(accumulator, np.int32)
    if stochastic:
        value = np.abs(value)
    total = np.add(value, bias, dtype=np.int32, casting="unsafe")
    return np.maximum(total, 0) if positive else total ^ (total >> 31)


def clamp(value: Any, zero_point: Any, minimum: int, maximum: int) -> np.ndarray:
    """value + zero_point within minimum..maximum, as int8."""
    return np.clip(np.asarray(value) + zero_point, minimum, maximum).astype(np.int8)

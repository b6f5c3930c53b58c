"""Rounds 32-bit sums to 8 bits: the forward pass to nearest, errors and updates as NITI does."""

from typing import Any

import numpy as np

CODE_BITS = 7
"""Bits of the magnitude of an activation, weight or error."""

LARGEST_CODE = (1 << CODE_BITS) - 1
"""Codes are symmetric: -127..127, zero point 0."""

LARGEST_SHIFT = 31
LARGEST_SUM = (1 << 31) - 1
"""Magnitude of a sum of 32 bits; -2^31 is not one, so that magnitudes have 31 bits."""

FRACTION_BITS = 8
"""Dropped bits at most that pseudo-stochastic rounding of errors takes for the fraction, and for
chance: a lane of the post-processor compares bytes."""

UPDATE_FRACTION_BITS = 16
"""The same for updates, where most steps are far below a unit: all that are dropped."""

FORWARD_MULTIPLIER = 1 << 30
"""With the rounding HALF_EVEN and a right shift of ``FORWARD_SHIFT + shift``, today's
post-processor (:func:`slipstick_rtl.numbers.rounding.requantize`) computes
:func:`round_half_even`."""
FORWARD_SHIFT = 30


def shift_for(largest: int) -> int:
    """Chooses the shift that brings a largest magnitude to 7 bits, 0..24.

    ``max(0, bits - 7)`` where ``bits`` is the position of the leading one: a priority encoder.
    What rounds up to 128 saturates at 127.

    Parameters
    ----------
    largest : int, 0..2^31 - 1
        Of this step (range "present") or of the step before (range "previous").

    Raises
    ------
    ValueError
        If it is out of range.
    """
    if not 0 <= largest <= LARGEST_SUM:
        raise ValueError(f"a largest magnitude must be within 0..{LARGEST_SUM}, not {largest}")
    return max(0, int(largest).bit_length() - CODE_BITS)


def next_exponent(exponent: int, largest: int) -> int:
    """The exponent that 7 bits need: what a step leaves for the next one, and what boards compare.

    Parameters
    ----------
    exponent : int
        Of the sums.
    largest : int
        Their largest magnitude, 0..2^31 - 1.
    """
    return exponent + shift_for(largest)


def shift_between(exponent: int, target: int) -> int:
    """The shift of sums of an exponent towards codes of another, cut to 0..31.

    With the range "previous" the target is that of the step before: where sums have grown since,
    codes saturate; where the target is below the sums' exponent, the shift is 0 and the codes have
    the sums' exponent. The codes' exponent is ``exponent + shift``.
    """
    return min(LARGEST_SHIFT, max(0, target - exponent))


def largest_magnitude(values: Any) -> int:
    """The largest absolute value of integers, 0 of none: what the post-processor reports."""
    values = np.asarray(values)
    if not values.size:
        return 0
    return max(int(values.max()), -int(values.min()))


def saturate(values: Any, largest: int = LARGEST_CODE) -> np.ndarray:
    """Integers within -largest..largest, of the same type."""
    return np.clip(values, -largest, largest)


def round_half_even(values: Any, shift: int) -> np.ndarray:
    """values / 2^shift, rounded once to nearest, ties to even: the forward pass.

    Parameters
    ----------
    values : array of int32
    shift : int, 0..31

    Returns
    -------
    array of int32
        Not saturated.
    """
    check_shift(shift)
    values = np.asarray(values, np.int32)
    if shift == 0:
        return values.copy()
    quotient = values >> shift
    # the dropped bits against half; a sum with half would pass 32 bits
    dropped = values & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    quotient += (dropped > half) | ((dropped == half) & ((quotient & 1) == 1))
    return quotient


def round_pseudo_stochastic(
    values: Any, shift: int, fraction_bits: int = FRACTION_BITS
) -> np.ndarray:
    """values / 2^shift, rounded by the dropped bits themselves: errors and updates.

    Sign and magnitude. The dropped bits are cut in two: the upper ceil(shift / 2) of them, or
    ``fraction_bits`` if that is less, are the fraction; as many behind them, with a 0 at the end
    where they are one too few, stand for a random number. The magnitude is rounded up where the
    fraction is greater. Nothing else is random, so that every run gives the same bits. (M. Wang et
    al., "NITI: training integer neural networks using integer-only arithmetic", 2022; there the
    fraction has no fewer bits than half.)

    Parameters
    ----------
    values : array of int32, magnitudes up to 2^31 - 1
    shift : int, 0..31
    fraction_bits : int
        ``FRACTION_BITS`` for errors, ``UPDATE_FRACTION_BITS`` for updates.

    Returns
    -------
    array of int32
        Not saturated.
    """
    check_shift(shift)
    values = np.asarray(values, np.int32)
    if shift == 0:
        return values.copy()
    width = min(fraction_bits, (shift + 1) // 2)
    below = shift - 2 * width
    magnitude = np.abs(values)
    mask = (1 << width) - 1
    fraction = (magnitude >> (shift - width)) & mask
    chance = (magnitude >> below if below >= 0 else magnitude << 1) & mask
    magnitude >>= shift
    magnitude += fraction > chance
    return np.where(values < 0, -magnitude, magnitude)


def codes_of(values: Any) -> np.ndarray:
    """Rounded values as they are stored: int8, saturated at -127 and 127."""
    return saturate(values).astype(np.int8)


def align(values: Any, shift: int) -> np.ndarray:
    """Brings int32 numbers to other units: values / 2^shift to nearest even, or x 2^-shift.

    Parameters
    ----------
    values : array of int32
    shift : int
        Above 31 everything becomes 0.

    Returns
    -------
    array of int32

    Raises
    ------
    OverflowError
        If a shift to the left passes 32 bits.
    """
    values = np.asarray(values, np.int32)
    if shift > LARGEST_SHIFT:
        return np.zeros_like(values)
    if shift >= 0:
        return round_half_even(values, shift)
    if largest_magnitude(values) == 0:
        return values.copy()
    if -shift > LARGEST_SHIFT:
        raise OverflowError(f"a shift to the left by {-shift} passes 32 bits")
    return exact_sum(values.astype(np.int64) << -shift)


def exact_sum(values: Any, name: str = "a sum") -> np.ndarray:
    """Whole numbers as int32.

    Raises
    ------
    OverflowError
        If one passes 32 bits: no golden function wraps.
    """
    values = np.asarray(values)
    largest = largest_magnitude(values)
    if largest > LARGEST_SUM:
        raise OverflowError(f"{name} must be within +-{LARGEST_SUM}, not {largest}")
    return values.astype(np.int32)


def check_shift(shift: int) -> None:
    """Raises ValueError if a shift is not within 0..31."""
    if not 0 <= shift <= LARGEST_SHIFT:
        raise ValueError(f"a shift must be within 0..{LARGEST_SHIFT}, not {shift}")

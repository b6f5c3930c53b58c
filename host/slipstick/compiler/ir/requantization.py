"""Computes the requantiser's parameters, by which sums become codes, and when they are exact."""

import dataclasses
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.isa import OFFSET_BITS, Rounding
from slipstick_rtl.numbers.rounding import encode_shift

SHIFTS = range(-31, 8)
"""Powers of two by which one multiplier of 31 bits can be raised or lowered."""


@dataclass(frozen=True, eq=False)
class Requantization:
    """Parameters that make codes of sums: one entry per channel, or one for all.

    Parameters
    ----------
    bias : array of int64
    multiplier : array of int64, 0..2^31 - 1
    shift : array of int64
        As ``encode_shift`` gives them.
    rounding : array of int64
        A ``Rounding`` each.
    zero_point, minimum, maximum : int
    coded : bool
        The sum is the code; where codes are logarithms, the rest but the bias is not looked at.
    """

    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    rounding: np.ndarray
    zero_point: int = 0
    minimum: int = -128
    maximum: int = 127
    coded: bool = False


def requantization(
    multiplier: np.ndarray,
    shift: np.ndarray,
    bias: np.ndarray,
    zero_point: int,
    clamp: tuple[int, int],
) -> Requantization:
    """Returns TensorFlow Lite's multiplication by mantissa / 2^31 x 2^shift, exactly.

    With a right shift it is gemmlowp's two roundings. With a left shift by s, doubling and rounding
    (x 2^s m + 2^30) >> 31 is (x m + 2^(30 - s)) >> (31 - s): one rounding, half up.

    Raises
    ------
    ValueError
        If a left shift is too large for the hardware.
    """
    left = shift > 0
    rounding = np.where(left, int(Rounding.HALF_UP), int(Rounding.DOUBLE))
    encoded = [
        encode_shift(Rounding.HALF_UP, 31 - int(places))
        if raised
        else encode_shift(Rounding.DOUBLE, -int(places))
        for raised, places in zip(left, shift, strict=True)
    ]
    return Requantization(bias, multiplier, np.array(encoded), rounding, zero_point, *clamp)


def float_product(
    multiplier: np.ndarray,
    shift: np.ndarray,
    bias: np.ndarray,
    zero_point: int,
    clamp: tuple[int, int],
) -> Requantization:
    """Returns ONNX's multiplication by mantissa / 2^31 x 2^shift, in float32's arithmetic.

    Raises
    ------
    ValueError
        If a shift is too large for the hardware.
    """
    encoded = [encode_shift(Rounding.FLOAT, 31 - int(places)) for places in shift]
    rounding = np.full(len(encoded), int(Rounding.FLOAT))
    return Requantization(bias, multiplier, np.array(encoded), rounding, zero_point, *clamp)


def rounding_runs(
    values: Requantization, channels: int, lanes: int
) -> list[tuple[int, int, int]] | None:
    """Returns runs of slices of one rounding, as (first channel, behind the last, rounding).

    An instruction has one rounding. DOUBLE without a right shift is HALF_UP by 31, and both are
    encoded alike, so such a channel suits either. None if channels of one slice disagree.
    """
    if (values.rounding == int(Rounding.FLOAT)).all():
        return [(0, channels, int(Rounding.FLOAT))]
    unshifted = encode_shift(Rounding.DOUBLE, 0)
    runs: list[tuple[int, int, int]] = []
    suits_either = False
    for first in range(0, channels, lanes):
        end = min(first + lanes, channels)
        raised = values.rounding[first:end] == int(Rounding.HALF_UP)
        lowered = ~raised & (values.shift[first:end] > unshifted)
        if raised.any() and lowered.any():
            return None
        decided = bool(raised.any() or lowered.any())
        rounding = int(Rounding.HALF_UP if raised.any() else Rounding.DOUBLE)
        if runs and (not decided or suits_either or runs[-1][2] == rounding):
            runs[-1] = (runs[-1][0], end, rounding if suits_either else runs[-1][2])
            suits_either = suits_either and not decided
        else:
            runs.append((first, end, rounding))
            suits_either = not decided
    return runs


def half_up(multiplier: int, shift: int, zero_point: int, clamp: tuple[int, int]) -> Requantization:
    """Returns (sum x multiplier) / 2^shift, rounded once half up, for all channels."""
    return Requantization(
        np.array([0]),
        np.array([multiplier]),
        np.array([encode_shift(Rounding.HALF_UP, shift)]),
        np.array([int(Rounding.HALF_UP)]),
        zero_point,
        *clamp,
    )


def logarithm(bias: np.ndarray, offset: np.ndarray, clamp: tuple[int, int]) -> Requantization:
    """Returns the logarithm of a sum as a code, 2^(offset / 2^log_places) times as large.

    Parameters
    ----------
    bias : array of int64
    offset : array of int64
        Signed, 16 bits: see :class:`slipstick_rtl.numbers.lns.array_arithmetic.ArrayArithmetic`.
    clamp : (lowest, highest)
    """
    zeros = np.zeros(len(offset), np.int64)
    return Requantization(bias, offset & (1 << OFFSET_BITS) - 1, zeros, zeros, 0, *clamp)


def is_identity(values: Requantization) -> bool:
    """Tells whether every code of 8 bits stays what it is."""
    plain = identity()
    return all(
        np.all(getattr(values, field.name) == getattr(plain, field.name))
        for field in dataclasses.fields(Requantization)
    )


def identity(clamp: tuple[int, int] = (-128, 127)) -> Requantization:
    """Returns the sum itself, clamped."""
    return dataclasses.replace(half_up(1 << 30, 30, 0, clamp), coded=True)

"""Loops of training with rounding that numba compiles."""

from typing import Any

import numpy as np
from numba import njit

_MANTISSA_BITS = 23
_BIAS = 127


@njit(cache=True, nogil=True)
def round_sums(
    bits: Any,
    offsets: Any,
    logs: Any,
    places: int,
    guard: int,
    low: int,
    high: int,
    meanings: Any,
    numbers: Any,
    passes: Any,
) -> None:
    """``ArrayArithmetic.requantize`` of float32 sums, and where an error passes.

    Parameters
    ----------
    bits : array of int32, (rows, channels)
        Sums in units of the accumulator, the bits of their float32.
    offsets : array of int32, (channels,)
        The requantiser's.
    logs : array of int32
        ``ArrayArithmetic.log``.
    places, guard : int
        Binary places of a logarithm, and those of them below a code's.
    low, high : int
        The clamp. Errors pass what is strictly between, and what was not cut.
    meanings : array of float32, (largest code + 1,)
        What codes stand for.
    numbers : array of float32, (rows, channels)
        Filled with what the codes stand for.
    passes : array of uint8, (rows, channels)
        Filled with 1 where an error passes, 0 elsewhere.
    """
    dropped = np.int32(_MANTISSA_BITS)
    count = logs.shape[0]
    while count > 1:
        count >>= 1
        dropped -= np.int32(1)
    mask = np.int32(logs.shape[0] - 1)
    half = np.int32((1 << guard) >> 1)
    for row in range(bits.shape[0]):
        for channel in range(bits.shape[1]):
            word = bits[row, channel]
            place = ((word >> np.int32(_MANTISSA_BITS)) & np.int32(255)) - np.int32(_BIAS)
            fraction = logs[(word >> dropped) & mask]
            code = ((place << places) + fraction + offsets[channel] + half) >> guard
            # below 0.5 a sum of integers is 0
            code = max(code, np.int32(0)) if place >= -1 else np.int32(0)
            positive = word >= 0
            limit = high if positive else -low
            passes[row, channel] = (code <= limit) & (limit > 0)
            number = meanings[min(code, limit)]
            numbers[row, channel] = number if positive else -number


@njit(cache=True, nogil=True)
def step_adam(
    value: Any, gradient: Any, mean: Any, square: Any, rate: Any, decays: Any, corrections: Any
) -> None:
    """A step of Adam (D. Kingma and J. Ba, 2015) in place; flat arrays of float32.

    Parameters
    ----------
    decays, corrections : (mean's, square's)
    """
    small = np.float32(1e-8)
    for place in range(value.size):
        change = gradient[place]
        mean[place] += (np.float32(1) - decays[0]) * (change - mean[place])
        square[place] += (np.float32(1) - decays[1]) * (change * change - square[place])
        root = np.sqrt(square[place] * corrections[1]) + small
        value[place] -= rate * mean[place] * corrections[0] / root

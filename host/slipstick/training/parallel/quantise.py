"""Gradients in 8, 4, 2 or 1 bits per number: buckets with a step each, and levels of that step.

After D. Alistarh et al., "QSGD: communication-efficient SGD via gradient quantization and
encoding", 2017; one bit after F. Seide et al., "1-bit stochastic gradient descent", 2014.
"""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from .counter import counter_bits

WIDTHS = (8, 4, 2, 1)
"""Bits per number."""
BUCKET = 512
"""Numbers that share a step."""

_PLACES = 3
"""A step is (8 + mantissa) x 2^exponent / 8: 5 bits of exponent, 3 of mantissa; 255 at most."""
_FULL = np.int64((1 << 31) - 1)


@dataclass(frozen=True)
class Levels:
    """Numbers as multiples of their buckets' steps.

    Parameters
    ----------
    levels : array of int16, (count,)
        -127..127 with 8 bits, -7..7 with 4, -1..1 with 2; -1 or 1 with one.
    steps : array of uint8, (buckets,)
        Codes of the steps; 0: all of the bucket is 0.
    """

    levels: np.ndarray
    steps: np.ndarray

    def values(self) -> np.ndarray:
        """Returns the numbers that the levels stand for, int64 within 32 bits."""
        steps = np.repeat(step_values(self.steps), BUCKET)[: len(self.levels)]
        return saturated(self.levels * steps)


def check_bits(bits: int) -> None:
    """ValueError unless numbers may have so many bits."""
    if bits not in WIDTHS:
        raise ValueError(f"numbers must have 8, 4, 2 or 1 bits, not {bits}")


def step_values(codes: np.ndarray) -> np.ndarray:
    """Steps of their codes, int64: 0 for 0, otherwise at least 1."""
    wide = codes.astype(np.int64)
    exponents, mantissas = wide >> _PLACES, wide & ((1 << _PLACES) - 1)
    steps = np.maximum(1, ((8 + mantissas) << exponents) >> _PLACES)
    return np.where(wide == 0, 0, steps)


_STEPS = step_values(np.arange(256))


def step_codes(least: np.ndarray) -> np.ndarray:
    """Codes of the smallest steps that are not below ``least``."""
    return np.minimum(np.searchsorted(_STEPS, least, side="left"), 255).astype(np.uint8)


def quantise(values: np.ndarray, bits: int, seed: int) -> Levels:
    """Rounds numbers to levels, pseudo-stochastically: their expectation is the number.

    With one bit a level is the sign, and the step the mean magnitude: that needs error feedback.

    Parameters
    ----------
    values : array of int32 or int64, (count,), within 32 bits
    bits : int
    seed : int
        Of the rounding: another one for each message.
    """
    check_bits(bits)
    count = len(values)
    buckets = -(-count // BUCKET)
    magnitudes = np.zeros(buckets * BUCKET, np.int64)
    magnitudes[:count] = np.abs(values.astype(np.int64))
    by_bucket = magnitudes.reshape(buckets, BUCKET)
    if bits == 1:
        sizes = np.full(buckets, BUCKET)
        if buckets:
            sizes[-1] = count - BUCKET * (buckets - 1)
        means = -(-by_bucket.sum(axis=1) // np.maximum(sizes, 1))
        signs = np.where(values < 0, -1, 1).astype(np.int16)
        return Levels(signs, step_codes(means))
    most = (1 << (bits - 1)) - 1
    steps = step_codes(-(-by_bucket.max(axis=1, initial=0) // most))
    divisors = np.repeat(np.maximum(step_values(steps), 1), BUCKET)[:count]
    whole, rest = np.divmod(magnitudes[:count], divisors)
    chance = (counter_bits(seed, count) >> np.uint64(32)).astype(np.int64)
    # rest / divisor > chance / 2^32, without a division
    whole += (rest << np.int64(32)) > chance * divisors
    return Levels((np.sign(values) * whole).astype(np.int16), steps)


def pack(levels: Levels, bits: int) -> bytes:
    """The bytes of levels: the steps, then the levels, the first in the lowest bits.

    A level is in two's complement; with one bit, 1 is the minus.
    """
    check_bits(bits)
    codes = levels.levels.astype(np.uint8)
    if bits == 1:
        codes = (levels.levels < 0).astype(np.uint8)
    each = 8 // bits
    padded = np.zeros(-(-len(codes) // each) * each, np.uint8)
    padded[: len(codes)] = codes & np.uint8((1 << bits) - 1)
    places = (np.arange(each, dtype=np.uint8) * bits).astype(np.uint8)
    packed = np.bitwise_or.reduce(padded.reshape(-1, each) << places, axis=1)
    return levels.steps.tobytes() + packed.astype(np.uint8).tobytes()


def packed_size(count: int, bits: int) -> int:
    """Bytes of so many numbers."""
    return -(-count // BUCKET) + -(-count * bits // 8)


def unpack(data: bytes, count: int, bits: int) -> Levels:
    """The levels of bytes.

    Raises
    ------
    InputError
        If there are more or fewer bytes, or ones that ``pack`` does not make.
    """
    check_bits(bits)
    if len(data) != packed_size(count, bits):
        raise InputError(
            f"{count} numbers of {bits} bits must be {packed_size(count, bits)} bytes, not"
            f" {len(data)}"
        )
    buckets, each = -(-count // BUCKET), 8 // bits
    steps = np.frombuffer(data, np.uint8, buckets)
    packed = np.frombuffer(data, np.uint8, offset=buckets)
    places = (np.arange(each, dtype=np.uint8) * bits).astype(np.uint8)
    codes = ((packed[:, None] >> places) & np.uint8((1 << bits) - 1)).reshape(-1)
    if codes[count:].any():
        raise InputError("bits behind the last number must be 0")
    codes = codes[:count].astype(np.int16)
    if bits == 1:
        return Levels((1 - 2 * codes).astype(np.int16), steps)
    levels = np.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes).astype(np.int16)
    lowest = 1 - (1 << (bits - 1))
    if (levels < lowest).any():
        raise InputError(f"a level of {bits} bits must not be below {lowest}")
    return Levels(levels, steps)


def saturated(values: np.ndarray) -> np.ndarray:
    """int64 numbers within +-(2^31 - 1)."""
    return np.clip(values, -_FULL, _FULL)

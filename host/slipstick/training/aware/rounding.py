"""Rounds real numbers as a logarithmic array does, with errors that pass straight through.

The straight-through estimator (Y. Bengio et al., 2013): backward, a rounding counts as the identity
where the number is within the format's range, and as a constant where it was cut.
"""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import GUARD_BITS, ArrayArithmetic

from ...kernels.lns.codes import decode, encode, magnitudes


@dataclass(frozen=True)
class SumRounding:
    """Turns a layer's sums into codes of its output.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    units : array, (channels,)
        Real numbers that a sum of 1 stands for.
    scale : float
        Of the output.
    relu : bool
        Whether codes below 0 become 0.
    """

    arithmetic: ArrayArithmetic
    units: np.ndarray
    scale: float
    relu: bool

    def __call__(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rounds real numbers, which have no code yet.

        Parameters
        ----------
        numbers : array of float32, (..., channels)

        Returns
        -------
        (rounded, passes)
            What the codes stand for, float32, and where an error passes, uint8 of 0 or 1.
        """
        from .kernels import round_sums

        arithmetic, channels = self.arithmetic, numbers.shape[-1]
        units = np.broadcast_to(self.units, channels)
        offsets = [arithmetic.offset(float(unit) / self.scale) for unit in units]
        sums = (numbers * (1 / units).astype(np.float32)).reshape(-1, channels)
        # an array's are integers, and float32 has no other traces of how they came about
        np.rint(sums, out=sums)
        rounded, passes = np.empty_like(sums), np.empty(sums.shape, np.uint8)
        largest = arithmetic.lns.largest_code
        round_sums(
            sums.view(np.int32),
            np.array(offsets, np.int32),
            arithmetic.log,
            arithmetic.log_places,
            GUARD_BITS,
            0 if self.relu else -largest,
            largest,
            (magnitudes(arithmetic) * self.scale).astype(np.float32),
            rounded,
            passes,
        )
        return rounded.reshape(numbers.shape), passes.reshape(numbers.shape)


def round_input(
    numbers: np.ndarray, scale: float, arithmetic: ArrayArithmetic, *, doubled: bool
) -> list[np.ndarray]:
    """Rounds the network's input as the host does: to the nearest code, or to the sum of two.

    Parameters
    ----------
    numbers : array
        Bytes are looked up in a table of all 256.
    scale : float
    arithmetic : ArrayArithmetic
    doubled : bool
        Whether there is a second code, of what the first one lacks.

    Returns
    -------
    list of array of float32
        What the codes stand for.
    """
    if numbers.dtype == np.uint8:
        every = np.arange(256, dtype=np.float32)
        tables = round_input(every, scale, arithmetic, doubled=doubled)
        return [table[numbers] for table in tables]
    first = decode(encode(numbers, scale, arithmetic), scale, arithmetic)
    if not doubled:
        return [first.astype(np.float32)]
    # in float32, as the host's operators between codes compute
    rest = numbers.astype(np.float32) - first.astype(np.float32)
    second = decode(encode(rest, scale, arithmetic), scale, arithmetic)
    return [first.astype(np.float32), second.astype(np.float32)]


def round_weights(
    weights: np.ndarray, scales: np.ndarray, arithmetic: ArrayArithmetic
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a layer's weights to the nearest codes.

    Parameters
    ----------
    weights : array of float32, (outputs, ...)
    scales : array, (outputs,)
    arithmetic : ArrayArithmetic

    Returns
    -------
    (rounded, beyond)
        float32, and where a weight is beyond the largest code, bool.
    """
    wide = scales.astype(np.float64).reshape(-1, *[1] * (weights.ndim - 1))
    rounded = decode(encode(weights, wide, arithmetic), wide, arithmetic).astype(np.float32)
    return rounded, np.abs(weights) > wide * magnitudes(arithmetic)[-1]


class Products:
    """An array's products, in which powers of two between octaves are a table's.

    A product is that of two numbers, times a factor of both codes' fractions f and g: the table's
    entry for h = (f + g) mod 2^F over 2^(h / 2^F). The matrix of these factors is a sum of products
    of a function of f and one of g (its singular values), so that a layer's sums are a few ordinary
    ones. Places that an array cuts off (formats of 7 bits and more) are left.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    """

    def __init__(self, arithmetic: ArrayArithmetic) -> None:
        self._arithmetic = arithmetic
        count = len(arithmetic.antilog)
        exact = np.exp2(np.arange(count) / count + arithmetic.antilog_places)
        factors = (arithmetic.antilog / exact)[np.add.outer(range(count), range(count)) % count]
        left, values, right = np.linalg.svd(factors)
        kept = values > 1e-6 * values[0]
        roots = np.sqrt(values[kept])
        self._left, self._right = left[:, kept] * roots, right.T[:, kept] * roots

    def activations(self, numbers: np.ndarray, scale: float) -> list[np.ndarray]:
        """Activations, each time by another function of their fractions; array of float32 each."""
        return self._parts(numbers, np.float32(scale), self._left)

    def weights(self, rows: np.ndarray, scales: np.ndarray) -> list[np.ndarray]:
        """Weights (outputs, weights per output) likewise, with scales (outputs,)."""
        return self._parts(rows, scales.astype(np.float32)[:, None], self._right)

    def _parts(
        self, numbers: np.ndarray, scale: np.ndarray | np.float32, factors: np.ndarray
    ) -> list[np.ndarray]:
        count = len(factors)
        if count == 1:
            return [numbers]
        with np.errstate(divide="ignore"):
            logs = np.log2(np.abs(numbers) / scale) * np.float32(count)
        codes = np.rint(np.maximum(logs, np.float32(0))).astype(np.uint8) & np.uint8(count - 1)
        return [numbers * column[codes] for column in factors.T.astype(np.float32)]

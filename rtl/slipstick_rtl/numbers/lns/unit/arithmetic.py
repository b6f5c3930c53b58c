"""The arithmetic of logarithmic numbers, bit for bit, on ordered codes."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from ..formats import Lns
from .gaussian_log_interpolated_model import InterpolatedGauss
from .gaussian_log_model import LARGEST_PLAIN_FRACTION_BITS, GaussianLogs, PlainGauss, reach


class Operation(IntEnum):
    """The unit's operations on its operands a, b and c."""

    MULTIPLY = 0
    """a x b."""
    DIVIDE = 1
    """a / b."""
    SQUARE_ROOT = 2
    """The square root of a."""
    COMPARE = 3
    """1, 0 or -1 as a is more than, equal to or less than b."""
    ADD = 4
    """a + b."""
    SUBTRACT = 5
    """a - b."""
    COMPENSATED_ADD = 6
    """A running total a and a term b; c is what the total owes, and the rest what it owes then."""


@dataclass(frozen=True)
class LnsArithmetic:
    """Computes the results of the unit, and of every other user of these numbers.

    Operands and results are ordered codes of the format (:class:`.formats.Lns`), int32, broadcast.
    No result is undefined: what is too large saturates, what is too small is zero, and

    - a / 0 is the largest magnitude with the sign of a, and 0 / 0 is 0;
    - the square root of a negative number is 0.

    Products and quotients are exact in the logarithm. Square roots err by at most half an ulp; ties
    are rounded to an even exponent. Sums and differences err by at most half an ulp where F <= 6,
    and by less than one ulp where F is more, at every distance of the operands: cancellation makes
    no exception, since a difference of two codes is as exact as they are. Equal magnitudes with
    unlike signs give zero.

    Parameters
    ----------
    lns : Lns
    """

    lns: Lns

    @cached_property
    def gauss(self) -> GaussianLogs:
        """Tables of every result where F <= 6, pieces and cotransformation where it is more."""
        if self.lns.fraction_bits <= LARGEST_PLAIN_FRACTION_BITS:
            return PlainGauss(self.lns)
        return InterpolatedGauss(self.lns)

    @cached_property
    def plus_table(self) -> np.ndarray:
        """``gauss.plus`` of every distance, int32, with a 0 behind for all that are beyond."""
        return np.append(self.gauss.plus(np.arange(reach(self.lns))), np.int32(0))

    @cached_property
    def minus_table(self) -> np.ndarray:
        """The same of ``gauss.minus``; at distance 0 the result is below every magnitude."""
        table = np.append(self.gauss.minus(np.arange(reach(self.lns))), np.int32(0))
        table[0] = -self.lns.largest_code
        return table

    @property
    def one(self) -> int:
        """The code of 1."""
        return -self.lns.zero

    def execute(self, operation: Operation, a: Any, b: Any = 0, c: Any = 0) -> tuple[Any, Any]:
        """The result of an operation, and its rest: 0 but for compensated additions."""
        if operation is Operation.COMPENSATED_ADD:
            return self.compensated_add(a, b, c)
        if operation is Operation.SQUARE_ROOT:
            value = self.square_root(a)
        else:
            value = getattr(self, operation.name.lower())(a, b)
        return value, np.zeros_like(value)

    def multiply(self, a: Any, b: Any) -> np.ndarray:
        """a x b."""
        a, b = _codes(a, b)
        magnitude = np.abs(a) + np.abs(b) - self.one
        return self._finish(magnitude, (a < 0) != (b < 0), (a == 0) | (b == 0))

    def divide(self, a: Any, b: Any) -> np.ndarray:
        """a / b."""
        a, b = _codes(a, b)
        magnitude = np.where(b == 0, self.lns.largest_code, np.abs(a) - np.abs(b) + self.one)
        return self._finish(magnitude, (a < 0) != (b < 0), a == 0)

    def square_root(self, a: Any) -> np.ndarray:
        """The square root of a."""
        (a,) = _codes(a)
        exponent = a - self.one
        root = (exponent + ((exponent >> 1) & 1)) >> 1
        return np.where(a > 0, root + self.one, 0).astype(np.int32)

    def add(self, a: Any, b: Any) -> np.ndarray:
        """a + b."""
        a, b = _codes(a, b)
        of_a, of_b = np.abs(a), np.abs(b)
        larger, smaller = np.maximum(of_a, of_b), np.minimum(of_a, of_b)
        distance = np.minimum(larger - smaller, reach(self.lns))
        unlike = (a < 0) != (b < 0)
        change = np.where(unlike, self.minus_table[distance], self.plus_table[distance])
        magnitude = larger + np.where(smaller == 0, 0, change)
        return self._finish(magnitude, np.where(of_a >= of_b, a, b) < 0, larger == 0)

    def subtract(self, a: Any, b: Any) -> np.ndarray:
        """a - b."""
        return self.add(a, np.negative(b))

    def compare(self, a: Any, b: Any) -> np.ndarray:
        """The code of 1 where a > b, of -1 where a < b, and 0."""
        a, b = _codes(a, b)
        return (np.sign(a - b) * self.one).astype(np.int32)

    def compensated_add(self, total: Any, term: Any, compensation: Any) -> tuple[Any, Any]:
        """A sum that keeps what its roundings lose (W. Kahan, 1965).

        y = term + compensation; t = total + y; the rest is y - (t - total).

        Returns
        -------
        t, rest : array of int32
            The new total, and the compensation for the next term.
        """
        corrected = self.add(term, compensation)
        new = self.add(total, corrected)
        return new, self.subtract(corrected, self.subtract(new, total))

    def _finish(self, magnitude: Any, negative: Any, zero: Any) -> np.ndarray:
        """Codes of magnitudes that may be out of range."""
        clipped = np.where(zero, 0, np.clip(magnitude, 0, self.lns.largest_code))
        return np.where(negative, -clipped, clipped).astype(np.int32)


def _codes(*values: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(value, np.int32) for value in values)

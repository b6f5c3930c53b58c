"""Gaussian logarithms: what a sum or a difference adds to the logarithm of its larger operand.

With both magnitudes as logarithms to the base two, the larger one x above the smaller,

    log2(2^c + 2^(c - x)) = c + G+(x),    G+(x) = log2(1 + 2^-x),
    log2(2^c - 2^(c - x)) = c + G-(x),    G-(x) = log2(1 - 2^-x),    x > 0.

Here x is a *distance*: a whole number of ulps, so that an adder is a function of one integer and of
whether the signs are unlike, and can be checked at every point.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..formats import Lns

LARGEST_PLAIN_FRACTION_BITS = 6
"""Up to here a table of every result is at most 7,728 bits, under half a block of an ECP5."""


class GaussianLogs(Protocol):
    """Computes the Gaussian logarithms of one format, bit for bit."""

    @property
    def lns(self) -> Lns:
        """The format."""
        ...

    @property
    def table_bits(self) -> int:
        """Bits of all tables in hardware."""
        ...

    def plus(self, distance: Any) -> np.ndarray:
        """G+ in ulps, int32, of distances from 0 below ``reach(lns)``."""
        ...

    def minus(self, distance: Any) -> np.ndarray:
        """G- in ulps, int32, not positive, of distances from 1 below ``reach(lns)``; 0 of 0."""
        ...


def exact_plus(distance: Any, fraction_bits: int) -> np.ndarray:
    """G+ in ulps, float64; distances may be fractions."""
    steps = 1 << fraction_bits
    return np.log1p(np.exp2(-np.asarray(distance, np.float64) / steps)) * (steps / np.log(2))


def exact_minus(distance: Any, fraction_bits: int) -> np.ndarray:
    """G- in ulps, float64, of distances above 0."""
    steps = 1 << fraction_bits
    x = np.asarray(distance, np.float64) * (np.log(2) / steps)
    return np.log(-np.expm1(-x)) * (steps / np.log(2))


def rounds_to_zero_from(fraction_bits: int) -> int:
    """The distance from which on both logarithms are nearer to 0 than half an ulp."""
    steps = 1 << fraction_bits
    # -G-(x) < 1/2 ulp as soon as 2^-x < 1 - 2^(-1 / (2 * steps)); G+ is smaller
    share = -np.expm1(-np.log(2) / (2 * steps))
    return int(np.floor(-np.log2(share) * steps)) + 1


def reach(lns: Lns) -> int:
    """Distance from which on the larger operand is the result; no format has distances above it."""
    return min(rounds_to_zero_from(lns.fraction_bits), lns.largest_code)


@dataclass(frozen=True)
class PlainGauss:
    """A table of each: correctly rounded at every distance, 0.5 ulp."""

    lns: Lns

    @cached_property
    def plus_table(self) -> np.ndarray:
        """G+ of each distance below ``reach(lns)``, int32; trailing zeros are left out."""
        exact = exact_plus(np.arange(reach(self.lns)), self.lns.fraction_bits)
        return np.trim_zeros(np.rint(exact).astype(np.int32), "b")

    @cached_property
    def minus_table(self) -> np.ndarray:
        """-G- of each distance below ``reach(lns)``, int32; 0 of 0."""
        exact = exact_minus(np.arange(1, reach(self.lns)), self.lns.fraction_bits)
        return np.concatenate([[0], np.rint(-exact)]).astype(np.int32)

    @property
    def table_bits(self) -> int:
        """Words of each table times the bits of its largest."""
        tables = (self.plus_table, self.minus_table)
        return sum(len(table) * int(table.max()).bit_length() for table in tables)

    def plus(self, distance: Any) -> np.ndarray:
        """As ``GaussianLogs`` has it."""
        distance = np.asarray(distance)
        last = len(self.plus_table) - 1
        found = self.plus_table[np.minimum(distance, last)]
        return np.where(distance > last, np.int32(0), found)

    def minus(self, distance: Any) -> np.ndarray:
        """As ``GaussianLogs`` has it."""
        return -self.minus_table[np.asarray(distance)]

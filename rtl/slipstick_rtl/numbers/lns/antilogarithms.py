"""Shares what all products by a small table of antilogarithms and a shift need."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .formats import Lns

LARGEST_INTEGER_BITS = 4
"""Most integer bits of an array's formats.

A wider range would only be cut off, as the linear sums have 32 bits.
"""

LARGEST_PRODUCT_BITS = 20
"""Most bits of a product's magnitude: the lower ones are cut off.

A 32-bit accumulator then holds 2,048 products of the largest operands.
"""


@dataclass(frozen=True)
class Antilogarithms(ABC):
    """The table of a format and the places of its products.

    Parameters
    ----------
    lns : Lns
        Of the weights.
    """

    lns: Lns

    @property
    def antilog_places(self) -> int:
        """Binary places of the table's entries, F + 2."""
        return self.lns.fraction_bits + 2

    @cached_property
    def antilog(self) -> np.ndarray:
        """2^(f / 2^F) for each f below 2^F, rounded, with ``antilog_places``: int32."""
        count = 1 << self.lns.fraction_bits
        return np.rint(2.0 ** (np.arange(count) / count + self.antilog_places)).astype(np.int32)

    @property
    @abstractmethod
    def whole_bits(self) -> int:
        """Counts the bits of a product's magnitude before places are dropped."""

    @property
    def dropped_places(self) -> int:
        """Binary places that are cut off a product's magnitude."""
        return max(0, self.whole_bits - LARGEST_PRODUCT_BITS)

    @property
    def product_bits(self) -> int:
        """Counts the bits of a product's magnitude, less the dropped places."""
        return self.whole_bits - self.dropped_places

    @property
    def unit(self) -> float:
        """Gives the value of a product of 1, beside the operands' scales: 2^dropped / 2^places."""
        return 2.0 ** (self.dropped_places - self.antilog_places)


def check_bits(lns: Lns, what: str, *, integer: int, fraction: int) -> None:
    """ValueError if a format has more integer or fraction bits than ``what`` may have."""
    if lns.integer_bits > integer or lns.fraction_bits > fraction:
        raise ValueError(
            f"{what} must have at most {integer} integer and {fraction} fraction bits,"
            f" not {lns.integer_bits} and {lns.fraction_bits}"
        )

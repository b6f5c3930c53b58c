"""What an element with logarithmic weights and linear activations computes, bit for bit.

The other narrow variant of a logarithmic array: activations are int8, so that a product is the
activation times 2^f, chosen among a few multiples of it, and shifted. Sums are exact integers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .array_arithmetic import LARGEST_INTEGER_BITS, LARGEST_PRODUCT_BITS
from .formats import Lns

LARGEST_FRACTION_BITS = 2
"""Each of the 2^F multiples of an activation runs through the array beside it."""

ACTIVATION_BITS = 8
LARGEST_ACTIVATION = 1 << ACTIVATION_BITS - 1
"""Magnitude of the int8 -128."""


@dataclass(frozen=True)
class MixedArithmetic:
    """The arithmetic of one format of weights, with activations of int8.

    Parameters
    ----------
    lns : Lns
        Of the weights' ordered codes; of at most 4 integer and 2 fraction bits.

    Raises
    ------
    ValueError
        If it has more.
    """

    lns: Lns

    def __post_init__(self) -> None:
        integer, fraction = self.lns.integer_bits, self.lns.fraction_bits
        if integer > LARGEST_INTEGER_BITS or fraction > LARGEST_FRACTION_BITS:
            raise ValueError(
                f"weights for linear activations must have at most {LARGEST_INTEGER_BITS} integer"
                f" and {LARGEST_FRACTION_BITS} fraction bits, not {integer} and {fraction}"
            )

    @property
    def antilog_places(self) -> int:
        """Binary places of the multiples' factors: F + 2, none without fraction bits."""
        fraction = self.lns.fraction_bits
        return fraction + 2 if fraction else 0

    @cached_property
    def antilog(self) -> np.ndarray:
        """2^(f / 2^F) for each f below 2^F, rounded, with ``antilog_places``: int32."""
        count = 1 << self.lns.fraction_bits
        return np.rint(2.0 ** (np.arange(count) / count + self.antilog_places)).astype(np.int32)

    @property
    def largest_shift(self) -> int:
        """The integer part of the largest code."""
        return self.lns.largest_code >> self.lns.fraction_bits

    @property
    def _whole_bits(self) -> int:
        """Of a product's magnitude before places are dropped."""
        return (LARGEST_ACTIVATION * int(self.antilog[-1]) << self.largest_shift).bit_length()

    @property
    def dropped_places(self) -> int:
        """Binary places that are cut off a product's magnitude."""
        return max(0, self._whole_bits - LARGEST_PRODUCT_BITS)

    @property
    def product_bits(self) -> int:
        """Of a product's magnitude."""
        return self._whole_bits - self.dropped_places

    @property
    def unit(self) -> float:
        """What a product of 1 stands for, beside the operands' scales: 2^dropped / 2^places."""
        return 2.0 ** (self.dropped_places - self.antilog_places)

    def factor(self, weight: Any) -> np.ndarray:
        """What ordered codes multiply by, beside their scale, float64: 2^(m / 2^F), nearly."""
        w = np.asarray(weight, np.int64)
        fraction = np.abs(w) & (1 << self.lns.fraction_bits) - 1
        shift = (np.abs(w) >> self.lns.fraction_bits) - self.antilog_places
        return np.sign(w) * self.antilog[fraction] * np.exp2(shift)

    def multiply(self, activation: Any, weight: Any) -> np.ndarray:
        """Products of int8 and ordered codes, int32, in units of ``unit`` and of both scales.

        ``((|a| antilog[m mod 2^F]) << (m >> F)) >> dropped_places`` with m the weight's magnitude,
        with the sign; 0 if an operand is 0.
        """
        a, w = np.asarray(activation, np.int64), np.asarray(weight, np.int64)
        magnitude = np.abs(w)
        fraction = magnitude & (1 << self.lns.fraction_bits) - 1
        multiple = np.abs(a) * self.antilog[fraction]
        shifted = multiple << (magnitude >> self.lns.fraction_bits)
        return (np.sign(a) * np.sign(w) * (shifted >> self.dropped_places)).astype(np.int32)

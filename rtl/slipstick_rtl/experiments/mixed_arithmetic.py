"""Defines an element with logarithmic weights and linear activations, bit for bit.

The other narrow variant of a logarithmic array: activations are int8, so that a product is the
activation times 2^f, chosen among a few multiples of it, and shifted. Sums are exact integers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numbers.lns.antilogarithms import LARGEST_INTEGER_BITS, Antilogarithms, check_bits

LARGEST_FRACTION_BITS = 2
"""Each of the 2^F multiples of an activation runs through the array beside it."""

ACTIVATION_BITS = 8
LARGEST_ACTIVATION = 1 << ACTIVATION_BITS - 1
"""Magnitude of the int8 -128."""


@dataclass(frozen=True)
class MixedArithmetic(Antilogarithms):
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

    def __post_init__(self) -> None:
        check_bits(
            self.lns,
            "weights for linear activations",
            integer=LARGEST_INTEGER_BITS,
            fraction=LARGEST_FRACTION_BITS,
        )

    @property
    def antilog_places(self) -> int:
        """Binary places of the multiples' factors: F + 2, none without fraction bits."""
        return super().antilog_places if self.lns.fraction_bits else 0

    @property
    def whole_bits(self) -> int:
        """Counts the bits of a product's magnitude before places are dropped."""
        largest_shift = self.lns.largest_code >> self.lns.fraction_bits
        return (LARGEST_ACTIVATION * int(self.antilog[-1]) << largest_shift).bit_length()

    def factor(self, weight: Any) -> np.ndarray:
        """Returns factors of ordered codes, beside their scale, float64: 2^(m / 2^F), nearly."""
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

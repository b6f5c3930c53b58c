"""Defines a logarithmic array's arithmetic, bit for bit: products in log, sums in linear, codes.

The form is ELMA's (J. Johnson, "Rethinking floating point for deep learning", 2018): logarithms are
added, the sum becomes a linear number by a small table and a shift, and linear numbers are summed
exactly in integers. Operands and results are ordered codes (:class:`.formats.Lns`); a tensor's
scale S makes code k the value sign * 2^(abs(k) / 2^F) * S, and 0 for 0.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .antilogarithms import LARGEST_INTEGER_BITS, Antilogarithms

LARGEST_OPERAND_BITS = 8
"""Most bits of an array's formats: an ordered code is a byte."""

GUARD_BITS = 3
"""Binary places that a requantiser's logarithm has below the format's."""

_FLOAT64_MANTISSA, _FLOAT64_BIAS = 52, 1023
"""Bits of a float64's mantissa, and what its exponent's field has more than the exponent."""


@dataclass(frozen=True)
class ArrayArithmetic(Antilogarithms):
    """The arithmetic of one format.

    Parameters
    ----------
    lns : Lns
        Of at most 8 bits, 4 of them integer bits.

    Raises
    ------
    ValueError
        If it has more.
    """

    def __post_init__(self) -> None:
        if self.lns.bits > LARGEST_OPERAND_BITS:
            raise ValueError(
                f"an array's logarithmic format must have at most {LARGEST_OPERAND_BITS} bits,"
                f" not {self.lns.bits} ({self.lns.name})"
            )
        if self.lns.integer_bits > LARGEST_INTEGER_BITS:
            raise ValueError(
                f"an array's logarithmic format must have at most {LARGEST_INTEGER_BITS} integer"
                f" bits, not {self.lns.integer_bits} ({self.lns.name})"
            )

    @property
    def largest_shift(self) -> int:
        """The integer part of the largest sum of two codes."""
        return 2 * self.lns.largest_code >> self.lns.fraction_bits

    @property
    def whole_bits(self) -> int:
        """Counts the bits of a product's magnitude before places are dropped."""
        return self.largest_shift + self.antilog_places + 1

    def multiply(self, a: Any, b: Any) -> np.ndarray:
        """Products of ordered codes, int32, in units of ``unit`` and of both operands' scales.

        ``(antilog[s mod 2^F] << (s >> F)) >> dropped_places`` with s the sum of the magnitudes,
        with the sign; 0 if an operand is 0.
        """
        a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
        total = np.abs(a) + np.abs(b)
        fraction = total & (1 << self.lns.fraction_bits) - 1
        shifted = self.antilog[fraction].astype(np.int64) << (total >> self.lns.fraction_bits)
        return (shifted >> self.dropped_places).astype(np.int32) * np.sign(a * b).astype(np.int32)

    @cached_property
    def products(self) -> np.ndarray:
        """``multiply`` of every two bytes, int32 (256, 256), codes as unsigned bytes the indices.

        No program holds a byte that is no code of the format; their products mean nothing.
        """
        codes = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int32)
        codes = np.clip(codes, -self.lns.largest_code, self.lns.largest_code)
        return self.multiply(codes[:, None], codes[None, :])

    @property
    def log_places(self) -> int:
        """Binary places of a requantiser's logarithm, F + GUARD_BITS."""
        return self.lns.fraction_bits + GUARD_BITS

    @property
    def mantissa_bits(self) -> int:
        """Bits below the leading one that a requantiser looks at, F + 4."""
        return self.lns.fraction_bits + 4

    @cached_property
    def log(self) -> np.ndarray:
        """log2(1 + (m + 1/2) / 2^mantissa_bits), rounded, with ``log_places``: int32."""
        count = 1 << self.mantissa_bits
        exact = np.log2(1 + (np.arange(count) + 0.5) / count)
        return np.rint(exact * (1 << self.log_places)).astype(np.int32)

    def offset(self, scale: float) -> int:
        """The requantiser's ``offset`` for results that are ``scale`` times the linear value.

        ValueError if it does not fit 16 bits.
        """
        offset = round(float(np.log2(scale)) * (1 << self.log_places))
        if not -(1 << 15) <= offset < 1 << 15:
            raise ValueError(f"a scale must be within 2^+-{(1 << 15) >> self.log_places}: {scale}")
        return offset

    def requantize(self, value: Any, bias: Any, offset: Any) -> np.ndarray:
        """Ordered codes of linear values times 2^(offset / 2^log_places), without a clamp.

        Parameters
        ----------
        value, bias : array of int32
            Their sum wraps at 32 bits.
        offset : int, signed 16 bits, broadcast

        Returns
        -------
        array of int32
            0 where the sum is 0 or the code would be below 1; magnitudes above ``largest_code``
            become that. Within 0.6 ulp of the exact logarithm otherwise.
        """
        total = np.add(value, bias, dtype=np.int32, casting="unsafe")
        bits = self.mantissa_bits
        # a float64 has every sum exactly: its exponent, and the bits below the leading one
        found = np.abs(total.astype(np.float64)).view(np.int64) >> (_FLOAT64_MANTISSA - bits)
        place = (found >> bits) - _FLOAT64_BIAS
        log = (place << self.log_places) + self.log[found & (1 << bits) - 1]
        code = (log + np.asarray(offset, np.int64) + (1 << GUARD_BITS - 1)) >> GUARD_BITS
        code = np.where(total == 0, 0, np.clip(code, 0, self.lns.largest_code))
        return (code * np.sign(total)).astype(np.int32)

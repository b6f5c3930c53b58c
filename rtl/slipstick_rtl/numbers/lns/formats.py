"""Logarithmic number formats: a sign and the logarithm of the magnitude."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

SMALLEST_BITS, LARGEST_BITS = 5, 20

_NAME = re.compile(r"lns1\+(\d+)\+(\d+)")


@dataclass(frozen=True)
class Lns:
    """value = (-1)^s * 2^(e / 2^F), e in two's complement with I + F bits.

    The most negative e means zero, which has one sign only. One unit in the last place (ulp) is
    2^-F in the base-two logarithm. Results beyond the largest magnitude saturate; those that would
    round to an e below the smallest are zero.

    Three forms of a number stand in this project:

    - ``e`` and ``s``, as the formula has them;
    - the *word* of 1 + I + F bits that hardware carries: the sign above e in two's complement;
    - the *ordered code*, a signed integer with the order of the values: 0 for zero, otherwise the
      sign times ``e + 2^(I + F - 1)``, which is 1 or more. Ordered codes are what memories of a
      logarithmic array hold, as bytes: comparisons, maxima and clamps work on them as on integers.

    Parameters
    ----------
    integer_bits, fraction_bits : int
        I, at least 1, and F, at least 0, 5 to 20 bits together with the sign.

    Raises
    ------
    TypeError, ValueError
        If one is no integer, or out of range.
    """

    integer_bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        for name, low in (("integer_bits", 1), ("fraction_bits", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be int, not {value!r}")
            if value < low:
                raise ValueError(f"{name} must be at least {low}, not {value}")
        if not SMALLEST_BITS <= self.bits <= LARGEST_BITS:
            raise ValueError(
                f"a logarithmic format must have {SMALLEST_BITS} to {LARGEST_BITS} bits with its"
                f" sign, not {self.bits} ({self.name})"
            )

    @classmethod
    def parse(cls, name: str) -> "Lns":
        """The format that ``name`` names, such as "lns1+3+4"; ValueError if none."""
        match = _NAME.fullmatch(name)
        if not match:
            raise ValueError(
                f'a logarithmic format is named "lns1+I+F", such as "lns1+3+4", not {name!r}'
            )
        return cls(int(match[1]), int(match[2]))

    @property
    def name(self) -> str:
        """As ``parse`` takes it."""
        return f"lns1+{self.integer_bits}+{self.fraction_bits}"

    @property
    def exponent_bits(self) -> int:
        """I + F: bits of e."""
        return self.integer_bits + self.fraction_bits

    @property
    def bits(self) -> int:
        """1 + I + F."""
        return 1 + self.exponent_bits

    @property
    def zero(self) -> int:
        """The e that means zero."""
        return -(1 << (self.exponent_bits - 1))

    @property
    def smallest(self) -> int:
        """The e of the smallest magnitude that is not zero."""
        return self.zero + 1

    @property
    def largest(self) -> int:
        """The e of the largest magnitude."""
        return -self.zero - 1

    @property
    def largest_code(self) -> int:
        """The ordered code of the largest value, 2^(I + F) - 1."""
        return self.largest - self.zero

    def to_code(self, sign: Any, exponent: Any) -> np.ndarray:
        """Ordered codes, int32, of signs (true for negative) and exponents."""
        magnitude = np.asarray(exponent, np.int32) - self.zero
        return np.where(sign, -magnitude, magnitude)

    def from_code(self, code: Any) -> tuple[np.ndarray, np.ndarray]:
        """Signs (bool) and exponents (int32) of ordered codes."""
        code = np.asarray(code, np.int32)
        return code < 0, np.abs(code) + np.int32(self.zero)

    def to_word(self, sign: Any, exponent: Any) -> np.ndarray:
        """Words, int32, not negative; zero's sign is dropped."""
        exponent = np.asarray(exponent, np.int32)
        negative = np.asarray(sign, bool) & (exponent != self.zero)
        mask = (1 << self.exponent_bits) - 1
        return negative.astype(np.int32) << self.exponent_bits | exponent & mask

    def from_word(self, word: Any) -> tuple[np.ndarray, np.ndarray]:
        """Signs (bool) and exponents (int32) of words; those of zero are positive."""
        word = np.asarray(word, np.int32)
        mask, top = (1 << self.exponent_bits) - 1, 1 << (self.exponent_bits - 1)
        exponent = ((word & mask) ^ top) - np.int32(top)
        return (word >> self.exponent_bits & 1).astype(bool) & (exponent != self.zero), exponent

"""Multiplies on chips of four-input look-up tables, by the weight's digits in base four.

A weight is four digits of base four, each one of -1, 0, 1 and 2 (the highest -2 to 2), so that
no multiple of the activation needs an addition. One bit of a digit's multiple is a function of two
bits of the activation and two of the digit: one look-up table. ``-x`` is ``~x + 1``; the ones come
in as the carries of the additions that there are anyway, the lowest digit's with the addition to
the partial sum.
"""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value

from ..primitives.carry_sum import Operand

LOW_DIGITS = 3
CODE_BITS = 2 * LOW_DIGITS + 3
HALF_BITS = 12
PRODUCT_BITS = 16

Ones = tuple[Value, Value]
"""Two bits: if both are 1, a one is added."""

Add = Callable[[str, Operand, Operand, int, Ones], Value]
"""``(name, a, b, width, ones)``: a + b + ones, as ``carry_sum`` makes it."""


def encode(weight: Any) -> Value:
    """Returns an 8-bit weight's digits: three of 2 bits (3 means -1), a signed one of 3 bits."""
    codes: list[Value] = []
    carry: Value = Const(0, 1)
    for k in range(LOW_DIGITS):
        digit = weight[2 * k : 2 * k + 2] + carry
        codes.append(digit[:2])
        carry = digit >= 3
    highest = weight[2 * LOW_DIGITS :].as_signed() + carry
    return Cat(*codes, highest[:3])


def ones(code: Any, digit: int) -> Ones:
    """Returns what is added for a digit: a one if it is negative."""
    if digit == LOW_DIGITS:
        return code[-1], Const(1, 1)
    return code[2 * digit], code[2 * digit + 1]


def halves(activation: Any, code: Any, add: Add) -> tuple[Value, Value]:
    """Returns the sums of the two low and of the two high digits' multiples, 12 bits each.

    Each lacks the one of its lower digit.
    """
    multiples = [_multiple(activation, code[2 * k : 2 * k + 2]) for k in range(LOW_DIGITS)]
    highest, flip = _highest_multiple(activation, code[2 * LOW_DIGITS :])
    bits = HALF_BITS - 2
    pairs = (
        ("low_sum", multiples[0], Operand(multiples[1]), 1),
        ("high_sum", multiples[2], Operand(highest, flip=flip), LOW_DIGITS),
    )
    low, high = (
        Cat(first[:2], add(name, Operand(first[2:].as_signed()), second, bits, ones(code, digit)))
        for name, first, second, digit in pairs
    )
    return low, high


def whole(low: Any, high: Any, ones_of_high: Ones, add: Add) -> Value:
    """Returns weight x activation from its halves, 16 bits, less the lowest digit's one."""
    upper = Operand(low[4:].as_signed())
    bits = PRODUCT_BITS - 4
    return Cat(low[:4], add("whole_sum", upper, Operand(high.as_signed()), bits, ones_of_high))


def product(activation: Any, code: Any) -> Value:
    """Returns weight x activation, signed, 16 bits; combinational."""

    def add(_: str, a: Operand, b: Operand, width: int, one: Ones) -> Value:
        return (a.bits(width) + b.bits(width) + (one[0] & one[1]))[:width]

    low, high = halves(activation, code, add)
    lowest = ones(code, 0)
    exact = whole(low, high, ones(code, 2), add) + (lowest[0] & lowest[1])
    return exact[:PRODUCT_BITS].as_signed()


def _multiple(activation: Any, digit: Value) -> Value:
    positive = Mux(digit[1], activation << 1, Mux(digit[0], activation, 0))
    return Mux(digit == 3, ~activation, positive)[:9].as_signed()


def _highest_multiple(activation: Any, digit: Value) -> tuple[Value, Value]:
    """Returns magnitude and sign of a signed digit; it is even if and only if it is 0, 2 or -2."""
    magnitude = Mux(digit[0], activation, Mux(digit[1], activation << 1, 0))[:9]
    return magnitude.as_signed(), digit[2]

"""A multiplier for chips of four-input look-up tables: the weight's digits in base four.

A weight is four digits of base four, each one of -1, 0, 1 and 2 (the highest -2 to 2), so that
no multiple of the activation needs an addition. One bit of a digit's multiple is a function of two
bits of the activation and two of the digit: one look-up table. ``-x`` is ``~x + 1``; the ones that
are missing depend on the weight alone, and are added once for a whole column: ``correction``.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value

LOW_DIGITS = 3
CODE_BITS = 2 * LOW_DIGITS + 3
CORRECTION_BITS = 2 * LOW_DIGITS + 1
HALF_BITS = 12


def encode(weight: Any) -> Value:
    """The digits of a signed 8-bit weight: three of 2 bits (3 means -1), a signed one of 3 bits."""
    codes: list[Value] = []
    carry: Value = Const(0, 1)
    for k in range(LOW_DIGITS):
        digit = weight[2 * k : 2 * k + 2] + carry
        codes.append(digit[:2])
        carry = digit >= 3
    highest = weight[2 * LOW_DIGITS :].as_signed() + carry
    return Cat(*codes, highest[:3])


def correction(code: Any) -> Value:
    """What ``product`` is less than weight x activation: a one for each negative digit."""
    negative = [code[2 * k : 2 * k + 2] == 3 for k in range(LOW_DIGITS)]
    return Cat(*(bit for one in negative for bit in (one, Const(0, 1))), code[-1])


def halves(activation: Any, code: Any) -> tuple[Value, Value]:
    """The sums of the two low digits' multiples and of the two high ones', 12 bits each."""
    multiples = [_multiple(activation, code[2 * k : 2 * k + 2]) for k in range(LOW_DIGITS)]
    multiples.append(_highest_multiple(activation, code[2 * LOW_DIGITS :]))
    low = _sum(multiples[0], multiples[1], shift=2, bits=HALF_BITS)
    high = _sum(multiples[2], multiples[3], shift=2, bits=HALF_BITS)
    return low, high


def whole(low: Any, high: Any) -> Value:
    """weight x activation - correction from its halves, signed, 16 bits; combinational."""
    return _sum(low, high, shift=4, bits=16)


def product(activation: Any, code: Any) -> Value:
    """weight x activation - correction, signed, 16 bits; combinational."""
    return whole(*halves(activation, code))


def _multiple(activation: Any, digit: Value) -> Value:
    positive = Mux(digit[1], activation << 1, Mux(digit[0], activation, 0))
    return Mux(digit == 3, ~activation, positive)[:9].as_signed()


def _highest_multiple(activation: Any, digit: Value) -> Value:
    """``digit`` is signed; its magnitude is even if and only if it is 0, 2 or -2."""
    magnitude = Mux(digit[0], activation, Mux(digit[1], activation << 1, 0))[:9]
    return (magnitude ^ digit[2].replicate(9)).as_signed()


def _sum(low: Value, high: Value, *, shift: int, bits: int) -> Value:
    """low + high x 2^shift; the bits below the shift need no adder."""
    upper = low[shift:].as_signed() + high.as_signed()
    return Cat(low[:shift], upper[: bits - shift]).as_signed()

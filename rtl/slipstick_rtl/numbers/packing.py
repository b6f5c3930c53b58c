"""Two int8 products of one activation in one 18-bit multiplication.

The multiplier's operand is ``high x 2^9 + low`` for two weights. Of the product p, its lowest 9
bits are ``x low`` modulo 2^9, and the 16 bits above are ``x high + floor``, where
``floor = floor(x low / 2^9)`` lies in -32..32. It is got back modulo 32 from ``p[9:14] - x high``;
the sign of ``x low`` tells the rest, but for the 32 of -128 x -128, which is told from 0 by a flag.
(With 2^10 in place of 2^9 a pair of -128 and a negative weight would not fit into 18 bits.) All
three parts are summed down a column on their own, and put together once.
"""

from typing import Any

from amaranth.hdl import Cat, Shape, Value, signed, unsigned
from amaranth.lib import data

LOW_BITS = 9
HIGH_BITS = 16
RESIDUE_BITS = 5

STORED = data.StructLayout({"low": 8, "high": 9, "residue": RESIDUE_BITS, "edge": 1})
"""A pair of weights as elements hold it: the operand's parts, ``high`` modulo 32, low's edge."""

ACTIVATION = data.StructLayout({"value": signed(8), "edge": 1})


def edge(value: Any) -> Value:
    """With a number's sign it tells negative, zero, positive, and -128."""
    return (value[7] & ~value[:7].any()) | (~value[7] & value[:7].any())


def store(low: Any, high: Any) -> Value:
    """``STORED`` of two signed weights; combinational."""
    above = high.as_signed() - low[7]
    return Cat(low, above[:9], high[:RESIDUE_BITS], edge(low))


def operand(stored: Any) -> Value:
    """The multiplier's operand, 18 bits."""
    return Cat(stored.low, stored.low[7], stored.high).as_signed()


def floor_signs(x_sign: Any, x_edge: Any, low_sign: Any, low_edge: Any) -> tuple[Value, Value]:
    """Bits 6 and 5 of ``floor``: it is negative; and: it is negative or 32."""
    x_positive, low_positive = ~x_sign & x_edge, ~low_sign & low_edge
    negative = (x_sign & low_positive) | (x_positive & low_sign)
    largest = x_sign & x_edge & low_sign & low_edge
    return negative, negative | largest


def low_sum(rows: int) -> Shape:
    """Holds the sum of so many rows' lowest parts."""
    return unsigned((rows * ((1 << LOW_BITS) - 1)).bit_length())


def high_sum(rows: int) -> Shape:
    """Holds the sum of so many rows' highest parts, of magnitude 2^14 + 32 at most each."""
    return signed((rows * ((1 << 14) + 32)).bit_length() + 1)


def floor_sum(rows: int) -> Shape:
    """Holds the sum of so many rows' ``floor``, of magnitude 32 at most each."""
    return signed((rows * 32).bit_length() + 1)

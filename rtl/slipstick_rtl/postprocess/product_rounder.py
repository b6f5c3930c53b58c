"""The first of two roundings: a product to a multiple of a power of two."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import Rounding
from .multiplier import PRODUCT_BITS

LOWEST_BIT = 7
"""Of a product with FLOAT: a float32's significand has 24 bits, and a multiplier has 31."""

ROUNDED_BITS = PRODUCT_BITS - LOWEST_BIT

_SIGNIFICANT = 24
_HALF_UNITS = range(LOWEST_BIT, PRODUCT_BITS - 1 - _SIGNIFICANT)
"""Bits of a product that can be half a unit of its 24th bit: that many below its highest."""

_DOUBLE_HALF_UNIT = 30
_WITNESSES = (20, 33, 46)
"""Bits of a product: each serves the half units that lie 1 to 13 places below it."""

_GROUP = 4
"""Bits whose values are combined before others', to find the highest."""


class ProductRounder(wiring.Component):
    """Rounds a product where the rounding mode has a rounding before the last, one a cycle.

    DOUBLE: to a multiple of 2^31, ties up. FLOAT: to 24 significant bits. HALF_UP and HALF_EVEN:
    not at all.

    FLOAT finds the product's highest bit, and with it the half unit h, the bit below the 24th. It
    adds 2^h, or less by the lowest bit that a product has, so that ties go down; then all bits from
    h down are cleared. A tie must go to an even 24th bit, but where it goes shows only if the
    product is next to a tie of the *last* rounding, k + 1/2 with k below 512: that takes at most
    ten of the 24 bits, and all those from there down to h are equal, ones below the tie and zeros
    above it. So one of them, a witness, says whether ties go up.

    Members
    -------
    product : In(signed(63))
        With FLOAT a multiple of 2^7. In this cycle its highest bit is found.
    late_product : In(signed(63))
        The one of the cycle before, which is rounded: who makes it may have it at hand.
    rounding : In(Rounding)
        With ``product``.
    rounded : Out(signed(56))
        From bit 7 up; ``latency`` cycles after its product.
    sticky : Out(1)
        A bit below is set.
    """

    product: Signal
    late_product: Signal
    rounding: Signal
    rounded: Signal
    sticky: Signal

    latency = 2
    """Cycles: the highest bit, the sum."""

    def __init__(self) -> None:
        super().__init__(
            {
                "product": In(signed(PRODUCT_BITS)),
                "late_product": In(signed(PRODUCT_BITS)),
                "rounding": In(Rounding),
                "rounded": Out(signed(ROUNDED_BITS)),
                "sticky": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        double = self.rounding == Rounding.DOUBLE
        cleared, up = Signal(len(_HALF_UNITS), reset_less=True), Signal(reset_less=True)
        total = Signal(ROUNDED_BITS + 1)
        self._find(m, double, cleared, up)
        high = len(cleared)
        product = self.late_product
        # one addition: the lowest place makes the carry
        m.d.comb += total.eq(Cat(Const(1, 1), product[LOWEST_BIT:]) + Cat(up, cleared[1:]))
        m.d.sync += [
            self.rounded.eq(Cat(total[1:][:high] & ~cleared, total[1:][high:])),
            # with DOUBLE all of them are cleared, with FLOAT they are zeros
            self.sticky.eq(product[:LOWEST_BIT].any() & ~cleared[0]),
        ]
        return m

    def _find(self, m: Module, double: Value, cleared: Signal, up: Signal) -> None:
        """Bits that are cleared, from LOWEST_BIT up, and whether a tie goes up.

        Bit i is cleared if it is at most the half unit: if a bit from i + 24 up is not the sign's.
        """
        is_float = self.rounding == Rounding.FLOAT
        # from a place up all are the sign's if none differs from the next: no wire goes to them all
        differs = _suffixes_any(self.product[:-1] ^ self.product[1:])
        first: Value = Const(0)
        for place, bit in enumerate(_HALF_UNITS):
            clear = is_float & differs[bit + _SIGNIFICANT] | double & (bit <= _DOUBLE_HALF_UNIT)
            m.d.sync += cleared[place].eq(clear)
            first = first if place else clear
        witness: Value = self.product[_WITNESSES[-1]]
        for bit in reversed(_WITNESSES[:-1]):
            witness = Mux(differs[bit + _SIGNIFICANT], witness, self.product[bit])
        m.d.sync += up.eq(first & (double | witness))


def _suffixes_any(bits: Value) -> list[Value]:
    """For every place: a bit from there up is set; in groups, as a chain would be slow."""
    size = len(bits)
    groups = [bits[low : low + _GROUP].any() for low in range(0, size, _GROUP)]
    above = [Cat(groups[k + 1 :], Const(0, 1)).any() for k in range(len(groups))]
    return [
        bits[place : (place // _GROUP + 1) * _GROUP].any() | above[place // _GROUP]
        for place in range(size)
    ]

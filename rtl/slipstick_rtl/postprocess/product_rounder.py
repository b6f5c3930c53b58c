"""The first of two roundings: a product to a multiple of a power of two."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import Rounding
from ..primitives.delay import delay
from .multiplier import PRODUCT_BITS

LOWEST_BIT = 7
"""Of a product with FLOAT: a float32's significand has 24 bits, and a multiplier has 31."""

ROUNDED_BITS = PRODUCT_BITS - LOWEST_BIT

_SIGNIFICANT = 24
_HALF_UNITS = range(LOWEST_BIT, PRODUCT_BITS - 1 - _SIGNIFICANT)
"""Bits of a product that can be half a unit of its 24th bit: that many below its highest."""

_DOUBLE_HALF_UNIT = 30
_WITNESSES = (20, 33, 46)
"""Each lies 1 to 13 places above the half units from 12 places below the one before it up."""


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

    Parameters
    ----------
    stages : int
        1, or 2 for a quick clock: the highest bit is found in a cycle of its own.

    Members
    -------
    product : In(signed(63))
        With FLOAT a multiple of 2^7.
    rounding : In(Rounding)
        Constant while products are under way.
    rounded : Out(signed(56))
        From bit 7 up; ``latency`` cycles after its product.
    sticky : Out(1)
        A bit below is set.

    Raises
    ------
    ValueError
        If ``stages`` is neither 1 nor 2.
    """

    product: Signal
    rounding: Signal
    rounded: Signal
    sticky: Signal

    def __init__(self, *, stages: int) -> None:
        if stages not in (1, 2):
            raise ValueError(f"stages must be 1 or 2, not {stages}")
        self._stages = stages
        super().__init__(
            {
                "product": In(signed(PRODUCT_BITS)),
                "rounding": In(Rounding),
                "rounded": Out(signed(ROUNDED_BITS)),
                "sticky": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles: as many as stages."""
        return self._stages

    def elaborate(self, platform: object) -> Module:
        m = Module()
        double = self.rounding == Rounding.DOUBLE
        cleared, up = self._find(m, double)

        def settle(value: Value, name: str) -> Value:
            return delay(m, value, self._stages - 1, name, reset_less=True)

        cleared, up = settle(cleared, "cleared"), settle(up, "up")
        product = settle(self.product[LOWEST_BIT:], "product")
        below = settle(self.product[:LOWEST_BIT].any() & ~double, "below")
        # one addition: the lowest place makes the carry
        total = Signal(ROUNDED_BITS + 1)
        m.d.comb += total.eq(Cat(Const(1, 1), product) + Cat(up, cleared[1:]))
        high = len(cleared) + 1
        m.d.sync += [
            self.rounded.eq(Cat(total[1:high] & ~cleared, total[high:])),
            self.sticky.eq(below),
        ]
        return m

    def _find(self, m: Module, double: Value) -> tuple[Value, Value]:
        """Bits that are cleared, from LOWEST_BIT up, and whether a tie goes up.

        Bit i is cleared if it is at most the half unit: if a bit from i + 24 up is not the sign's.
        """
        product, sign = self.product, self.product[-1]
        is_float = self.rounding == Rounding.FLOAT
        # place k: a bit from k up differs from the sign
        differs: list[Value] = [Const(0, 1)] * PRODUCT_BITS
        for place in reversed(range(_HALF_UNITS.start + _SIGNIFICANT, PRODUCT_BITS - 1)):
            differs[place] = differs[place + 1] | (product[place] ^ sign)
        cleared = Signal(len(_HALF_UNITS))
        m.d.comb += cleared.eq(
            Cat(
                is_float & differs[place + _SIGNIFICANT] | double & (place <= _DOUBLE_HALF_UNIT)
                for place in _HALF_UNITS
            )
        )
        witness: Value = product[_WITNESSES[-1]]
        for bit in reversed(_WITNESSES[:-1]):
            witness = Mux(differs[bit + _SIGNIFICANT], witness, product[bit])
        return cleared, cleared[0] & (double | witness)

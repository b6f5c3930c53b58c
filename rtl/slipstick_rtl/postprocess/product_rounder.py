"""The first of two roundings: a product to a multiple of a power of two."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import Rounding
from ..primitives.stages import Stages, busy_member
from .multiplier import PRODUCT_BITS

LOWEST_BIT = 7
"""Lowest bit of a product with FLOAT: a float32's significand has 24 bits, a multiplier has 31."""

ROUNDED_BITS = PRODUCT_BITS - LOWEST_BIT

_SIGNIFICANT = 24
_HALF_UNITS = range(LOWEST_BIT, PRODUCT_BITS - 1 - _SIGNIFICANT)
"""Bits of a product that can be half a unit of its 24th bit: that many below its highest."""

_DOUBLE_HALF_UNIT = 30
_WITNESSES = (20, 33, 46)
"""Bits of a product: each serves the half units that lie 1 to 13 places below it."""

LATENCY, GROUPED_LATENCY = 2, 3
"""Cycles of a rounder: without and with a cycle of its own for the groups."""

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

    Parameters
    ----------
    in_groups : bool
        The highest bit is found in two cycles: first which group of bits has it.
    silicon : int
        1: with a ``busy_member``.

    Members
    -------
    product : In(signed(63))
        With FLOAT a multiple of 2^7.
    late_product : In(signed(63))
        The one of the cycle before: who makes it may have it at hand.
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

    def __init__(self, *, in_groups: bool = False, silicon: int = 0) -> None:
        self._in_groups, self._silicon = in_groups, silicon
        self.latency = GROUPED_LATENCY if in_groups else LATENCY
        """Cycles: (the group of bits with the highest one,) that bit, the sum."""
        super().__init__(
            {
                "product": In(signed(PRODUCT_BITS)),
                "late_product": In(signed(PRODUCT_BITS)),
                "rounding": In(Rounding),
                "rounded": Out(signed(ROUNDED_BITS)),
                "sticky": Out(1),
                **busy_member(self.latency, silicon=silicon),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._stages = Stages.of(self, silicon=self._silicon)
        cleared, up = Signal(len(_HALF_UNITS), reset_less=True), Signal(reset_less=True)
        total = Signal(ROUNDED_BITS + 1)
        rounded, sticky = Signal(ROUNDED_BITS, reset_less=True), Signal(reset_less=True)
        self._find(m, cleared, up)
        high = len(cleared)
        last = self.latency - 1
        kept = self._later(m, self.late_product[LOWEST_BIT:], last - 1, "kept")
        below = self._later(m, self.late_product[:LOWEST_BIT].any(), last - 1, "below")
        # one addition: the lowest place makes the carry
        m.d.comb += total.eq(Cat(Const(1, 1), kept) + Cat(up, cleared[1:]))
        with self._stages.at(m, last):
            m.d.sync += [
                rounded.eq(Cat(total[1:][:high] & ~cleared, total[1:][high:])),
                # with DOUBLE all of them are cleared, with FLOAT they are zeros
                sticky.eq(below & ~cleared[0]),
            ]
        m.d.comb += [self.rounded.eq(rounded), self.sticky.eq(sticky)]
        return m

    def _later(self, m: Module, value: Value, stage: int, name: str) -> Value:
        """A cycle later, if there is one more for the groups."""
        return self._stages.delay(m, value, stage, int(self._in_groups), name)

    def _find(self, m: Module, cleared: Signal, up: Signal) -> None:
        """Bits that are cleared, from LOWEST_BIT up, and whether a tie goes up.

        Bit i is cleared if it is at most the half unit: if a bit from i + 24 up is not the sign's.
        From a place up all are the sign's if none differs from the next.
        """
        double, is_float = (
            self._later(m, self.rounding == rounding, 0, f"is_{rounding.name}")
            for rounding in (Rounding.DOUBLE, Rounding.FLOAT)
        )
        groups = self._later(m, Cat(_groups(_changes(self.product))), 0, "groups")
        product = self.late_product if self._in_groups else self.product
        differs = _suffixes_any(_changes(product), groups)
        first: Value = Const(0)
        for place, bit in enumerate(_HALF_UNITS):
            clear = is_float & differs[bit + _SIGNIFICANT] | double & (bit <= _DOUBLE_HALF_UNIT)
            with self._stages.at(m, self.latency - 2):
                m.d.sync += cleared[place].eq(clear)
            first = first if place else clear
        witness: Value = product[_WITNESSES[-1]]
        for bit in reversed(_WITNESSES[:-1]):
            witness = Mux(differs[bit + _SIGNIFICANT], witness, product[bit])
        with self._stages.at(m, self.latency - 2):
            m.d.sync += up.eq(first & (double | witness))


def _changes(product: Value) -> Value:
    """Marks each bit that differs from the next one."""
    return product[:-1] ^ product[1:]


def _groups(bits: Value) -> list[Value]:
    """Tests each group of ``_GROUP`` bits for a one."""
    return [bits[low : low + _GROUP].any() for low in range(0, len(bits), _GROUP)]


def _suffixes_any(bits: Value, groups: Value) -> list[Value]:
    """For every place: a bit from there up is set; ``groups`` are those of the bits."""
    return [
        bits[place : (place // _GROUP + 1) * _GROUP].any()
        | Cat(groups[place // _GROUP + 1 :], Const(0, 1)).any()
        for place in range(len(bits))
    ]

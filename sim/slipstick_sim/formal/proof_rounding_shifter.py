"""Rounder and shifter: equal to their definition for every product, every shift and rounding."""

from amaranth.hdl import Assert, Assume, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import FRACTION_BITS, encode_shift
from slipstick_rtl.postprocess.multiplier import FACTOR_BITS, PRODUCT_BITS, VALUE_BITS
from slipstick_rtl.postprocess.product_rounder import GROUPED_LATENCY, LOWEST_BIT, ProductRounder
from slipstick_rtl.postprocess.rounding_shifter import QUOTIENT_BITS, SHIFT_BITS, RoundingShifter
from slipstick_rtl.primitives.delay import delay

from .registry import Proof

_SHIFTS = {rounding: (24, 62) for rounding in Rounding} | {Rounding.DOUBLE: (0, 31)}
_SIGNIFICANT = 24
"""Bits that a float32 has."""

_LATENCY = GROUPED_LATENCY + RoundingShifter.latency


class RoundsAsDefined(wiring.Component):
    """The two beside ``numbers.rounding.requantize``, written in Amaranth line by line."""

    product: Signal
    shift: Signal

    def __init__(self, rounding: Rounding, negative: bool) -> None:
        self._rounding, self._negative = rounding, negative
        super().__init__({"product": In(signed(PRODUCT_BITS)), "shift": In(SHIFT_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rounder = rounder = ProductRounder(in_groups=True)
        m.submodules.shifter = shifter = RoundingShifter()
        rounding = self._rounding
        low, high = (encode_shift(rounding, shift) for shift in _SHIFTS[rounding])
        value = 1 << (VALUE_BITS - 1)
        factor = (1 << FACTOR_BITS) - 1
        if rounding is Rounding.FLOAT:
            factor -= (1 << LOWEST_BIT) - 1
        m.d.comb += [
            Assume((low <= self.shift) & (self.shift <= high), "shifts are encoded"),
            Assume(-value * factor <= self.product, "it is a product"),
            Assume(self.product <= (value - 1) * factor, "it is a product"),
            rounder.product.eq(self.product),
            rounder.late_product.eq(delay(m, self.product, 1, "late_product")),
            rounder.rounding.eq(rounding),
            shifter.product.eq(rounder.rounded),
            shifter.sticky.eq(rounder.sticky),
            shifter.shift.eq(delay(m, self.shift, rounder.latency, "shift")),
            shifter.rounding.eq(rounding),
        ]
        if rounding is Rounding.FLOAT:
            exact = ~self.product[:LOWEST_BIT].any()
            m.d.comb += [
                Assume(exact, "the multiplier is a significand"),
                Assume((self.product < 0) == self._negative, "it is of this sign"),
            ]
        product = delay(m, self.product, _LATENCY, "product")
        shift = delay(m, self.shift, _LATENCY, "amount")
        result = Signal(signed(PRODUCT_BITS + 1))
        m.d.comb += result.eq(self._define(m, product, shift))
        limit = 1 << (QUOTIENT_BITS - 1)
        # the first products leave after ``latency`` cycles
        started = delay(m, Const(1), _LATENCY, "started")
        with m.If(started & ~shifter.overflow):
            m.d.comb += Assert(result == shifter.quotient + shifter.increment, "rounded otherwise")
        with m.If(started & shifter.overflow):
            outside = Mux(shifter.negative, result <= -limit, result >= limit)
            m.d.comb += Assert(outside, "no overflow, or on the other side")
        return m

    def _define(self, m: Module, product: Value, shift: Value) -> Value:
        one = Const(1)
        if self._rounding is Rounding.DOUBLE:
            high, exponent = Signal(signed(PRODUCT_BITS)), Signal(5)
            m.d.comb += [
                high.eq((product + (1 << 30)) >> 31),
                exponent.eq(shift - FRACTION_BITS),
            ]
            half = ((one << exponent) >> 1) - ((high < 0) & (exponent > 0))
            return (high + half) >> exponent
        drop = Signal(6)
        m.d.comb += drop.eq(shift - FRACTION_BITS + 31)
        half = (one << drop) >> 1
        if self._rounding is Rounding.FLOAT:
            product = self._significant(m, product)
        if self._rounding in (Rounding.HALF_EVEN, Rounding.FLOAT):
            half = half - 1 + ((product >> drop) & 1)
        return (product + half) >> drop

    def _significant(self, m: Module, product: Value) -> Value:
        """The product as float32 has it: 24 bits from its highest down, ties to even."""
        magnitude, rounded = Signal(PRODUCT_BITS), Signal(PRODUCT_BITS)
        m.d.comb += [
            magnitude.eq(-product if self._negative else product),
            rounded.eq(magnitude),
        ]
        for highest in range(_SIGNIFICANT, PRODUCT_BITS):
            unit = highest - _SIGNIFICANT + 1
            with m.If((magnitude >> highest) == 1):
                half = (1 << (unit - 1)) - 1 + magnitude[unit]
                m.d.comb += rounded.eq(((magnitude + half) >> unit) << unit)
        return -rounded if self._negative else rounded


def _proof(rounding: Rounding, sign: str = "", negative: bool = False) -> Proof:
    return Proof(
        name=f"rounding_shifter_{rounding.name.lower()}{sign}",
        component=lambda: RoundsAsDefined(rounding, negative),
        depth=_LATENCY + 1,
        bounded=True,
    )


# in halves, for the solver's sake
PROOFS = (
    *(_proof(rounding) for rounding in Rounding if rounding is not Rounding.FLOAT),
    _proof(Rounding.FLOAT, "_positive"),
    _proof(Rounding.FLOAT, "_negative", negative=True),
)

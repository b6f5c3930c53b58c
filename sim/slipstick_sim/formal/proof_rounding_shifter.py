"""The rounding shifter: equal to its definition for every product, every shift, every rounding."""

from amaranth.hdl import Assert, Assume, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import FRACTION_BITS, encode_shift
from slipstick_rtl.postprocess.multiplier import FACTOR_BITS, PRODUCT_BITS, VALUE_BITS
from slipstick_rtl.postprocess.rounding_shifter import (
    QUOTIENT_BITS,
    SHIFT_BITS,
    RoundingShifter,
)
from slipstick_rtl.primitives.delay import delay

from .registry import Proof

_SMALLEST_SHIFT = {Rounding.DOUBLE: 0, Rounding.HALF_UP: 24, Rounding.HALF_EVEN: 24}
_LARGEST_SHIFT = {Rounding.DOUBLE: 31, Rounding.HALF_UP: 62, Rounding.HALF_EVEN: 62}


class RoundsAsDefined(wiring.Component):
    """The shifter beside ``numbers.rounding.requantize``, written in Amaranth line by line."""

    product: Signal
    shift: Signal

    def __init__(self, rounding: Rounding) -> None:
        self._rounding = rounding
        super().__init__({"product": In(signed(PRODUCT_BITS)), "shift": In(SHIFT_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.shifter = shifter = RoundingShifter()
        rounding = self._rounding
        low = encode_shift(rounding, _SMALLEST_SHIFT[rounding])
        high = encode_shift(rounding, _LARGEST_SHIFT[rounding])
        value = 1 << (VALUE_BITS - 1)
        factor = (1 << FACTOR_BITS) - 1
        m.d.comb += [
            Assume((low <= self.shift) & (self.shift <= high), "shifts are encoded"),
            Assume(-value * factor <= self.product, "it is a product"),
            Assume(self.product <= (value - 1) * factor, "it is a product"),
            shifter.product.eq(self.product),
            shifter.shift.eq(delay(m, self.shift, shifter.shift_delay, "shift")),
            shifter.rounding.eq(rounding),
        ]
        product = delay(m, self.product, shifter.latency, "product")
        shift = delay(m, self.shift, shifter.latency, "amount")
        result = Signal(signed(PRODUCT_BITS + 1))
        m.d.comb += result.eq(self._define(m, product, shift))
        limit = 1 << (QUOTIENT_BITS - 1)
        # the first products leave after ``latency`` cycles
        started = delay(m, Const(1), shifter.latency, "started")
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
        if self._rounding is Rounding.HALF_EVEN:
            half = half - 1 + ((product >> drop) & 1)
        return (product + half) >> drop


def _proof(rounding: Rounding) -> Proof:
    return Proof(
        name=f"rounding_shifter_{rounding.name.lower()}",
        component=lambda: RoundsAsDefined(rounding),
        depth=RoundingShifter.latency + 1,
        bounded=True,
    )


PROOFS = tuple(_proof(rounding) for rounding in Rounding)

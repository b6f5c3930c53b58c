"""A pipelined 32 x 31-bit multiplier made of three products that fit 18 x 18-bit DSP blocks."""

from amaranth.hdl import Cat, Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives.multiplier18 import Multiplier18
from ..primitives.stages import Stages, busy_member

VALUE_BITS = 32
FACTOR_BITS = 31
PRODUCT_BITS = VALUE_BITS + FACTOR_BITS
_HALF = 16
_VALUE_SUM_BITS = 18
_FACTOR_SUM_BITS = 17
"""Bits of the sum of an operand's halves; the value's lower half and the factor are unsigned."""

_INNER_BITS = 34
"""Bits of high x low + low x high, and of the sum of the outer products."""


class PipelinedMultiplier(wiring.Component):
    """value x factor, one product a cycle, exact; no reset.

    Both operands are cut in half. The two outer products do not overlap and need no addition; the
    sum of the two inner ones is the product of the operands' sums of halves less the outer ones
    (Karatsuba and Ofman, 1962): a DSP block less for about 70 look-up tables.

    Members
    -------
    value : In(signed(32))
    factor : In(31)
        Unsigned, in the same cycle as ``value``.
    product : Out(signed(63))
        ``latency`` cycles later.
    """

    value: Signal
    factor: Signal
    product: Signal

    latency = 1 + Multiplier18.latency + 2
    """Cycles: the sums of halves, their product, the sum of the inner ones, the whole sum."""

    def __init__(self, *, silicon: int = 0) -> None:
        self._silicon = silicon
        super().__init__(
            {
                **busy_member(self.latency, silicon=silicon),
                "value": In(signed(VALUE_BITS)),
                "factor": In(unsigned(FACTOR_BITS)),
                "product": Out(signed(PRODUCT_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = Stages.of(self, silicon=self._silicon)
        value_low, value_high = self.value[:_HALF], self.value[_HALF:].as_signed()
        factor_low, factor_high = self.factor[:_HALF], self.factor[_HALF:]
        value_sum = Signal(signed(_VALUE_SUM_BITS), reset_less=True)
        factor_sum = Signal(_FACTOR_SUM_BITS, reset_less=True)
        with stages.at(m, 0):
            m.d.sync += [
                value_sum.eq(value_high + value_low),
                factor_sum.eq(factor_high + factor_low),
            ]
        operands = {
            "low_low": (value_low, factor_low),
            "high_high": (value_high, factor_high),
            "cross": (value_sum, factor_sum),
        }
        products = {}
        for name, (a, b) in operands.items():
            product = Multiplier18(a=a.shape(), b=b.shape(), silicon=self._silicon)
            m.submodules[name] = product
            stages.lead(m, product, int(name == "cross"))
            m.d.comb += [product.a.eq(a), product.b.eq(b)]
            products[name] = product.p

        # the outer products come a cycle before the other
        outer = Cat(products["low_low"], products["high_high"])
        late = stages.delay(m, outer, Multiplier18.latency, 2, "outer")
        outer_sum = Signal(signed(_INNER_BITS), reset_less=True)
        inner = Signal(signed(_INNER_BITS), reset_less=True)
        product = Signal(signed(PRODUCT_BITS), reset_less=True)
        with stages.at(m, Multiplier18.latency):
            m.d.sync += outer_sum.eq(products["high_high"] + products["low_low"])
        with stages.at(m, Multiplier18.latency + 1):
            m.d.sync += inner.eq(products["cross"][:_INNER_BITS] - outer_sum)
        with stages.at(m, Multiplier18.latency + 2):
            m.d.sync += [
                product[:_HALF].eq(late[:_HALF]),
                product[_HALF:].eq(late[_HALF:].as_signed() + inner),
            ]
        m.d.comb += self.product.eq(product)
        return m

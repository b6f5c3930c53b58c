"""A pipelined 32 x 31-bit multiplier made of four products that fit 18 x 18-bit DSP blocks."""

from amaranth.hdl import Cat, Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives.multiplier18 import Multiplier18

VALUE_BITS = 32
FACTOR_BITS = 31
PRODUCT_BITS = VALUE_BITS + FACTOR_BITS
_HALF = 16
_INNER_BITS = 34
"""Of the sum of the two inner products."""


class PipelinedMultiplier(wiring.Component):
    """value x factor, one product a cycle, exact; no reset.

    Both operands are cut in half; the two outer products do not overlap and need no addition, the
    two inner ones are added to each other first and then to the outer ones.

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

    latency = Multiplier18.latency + 2
    """Cycles: the products, the sum of the inner ones, the whole sum."""

    def __init__(self) -> None:
        super().__init__(
            {
                "value": In(signed(VALUE_BITS)),
                "factor": In(unsigned(FACTOR_BITS)),
                "product": Out(signed(PRODUCT_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values = {"low": self.value[:_HALF], "high": self.value[_HALF:].as_signed()}
        factors = {"low": self.factor[:_HALF], "high": self.factor[_HALF:]}
        products = {}
        for value_half, value in values.items():
            for factor_half, factor in factors.items():
                product = Multiplier18(a=value.shape(), b=factor.shape())
                m.submodules[f"{value_half}_{factor_half}"] = product
                m.d.comb += [product.a.eq(value), product.b.eq(factor)]
                products[value_half, factor_half] = product.p

        outer = Signal(signed(PRODUCT_BITS), reset_less=True)
        inner = Signal(signed(_INNER_BITS), reset_less=True)
        product = Signal(signed(PRODUCT_BITS), reset_less=True)
        m.d.sync += [
            outer.eq(Cat(products["low", "low"], products["high", "high"])),
            inner.eq(products["high", "low"] + products["low", "high"]),
            product[:_HALF].eq(outer[:_HALF]),
            product[_HALF:].eq(outer[_HALF:].as_signed() + inner),
        ]
        m.d.comb += self.product.eq(product)
        return m

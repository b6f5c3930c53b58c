"""A pipelined 32 x 31-bit multiplier made of four products that fit 18 x 18-bit DSP blocks."""

from amaranth.hdl import Cat, Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .pipeline import delayed

VALUE_BITS = 32
FACTOR_BITS = 31
PRODUCT_BITS = VALUE_BITS + FACTOR_BITS
_HALF = 16

OPERAND_REGISTERS = 1
PRODUCT_REGISTERS = 1
"""Ranks of registers before and after the DSP blocks. Yosys packs none of them into the blocks on
ECP5: they serve to shorten the wires to and from the columns in which the blocks stand."""


class PipelinedMultiplier(wiring.Component):
    """value x factor, one product a cycle, exact.

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

    latency = OPERAND_REGISTERS + PRODUCT_REGISTERS + 2
    """Cycles: the operands, the products, the sum of the inner ones, the whole sum."""

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
        value = delayed(m, self.value, OPERAND_REGISTERS, "value")
        factor = delayed(m, self.factor, OPERAND_REGISTERS, "factor")
        value_high, value_low = value[_HALF:].as_signed(), value[:_HALF]
        factor_high, factor_low = factor[_HALF:], factor[:_HALF]

        low = delayed(m, value_low * factor_low, PRODUCT_REGISTERS, "low")
        inner_a = delayed(m, value_high * factor_low, PRODUCT_REGISTERS, "inner_a")
        inner_b = delayed(m, value_low * factor_high, PRODUCT_REGISTERS, "inner_b")
        high = delayed(m, value_high * factor_high, PRODUCT_REGISTERS, "high")

        outer = Signal(signed(PRODUCT_BITS))
        inner = Signal(signed(34))
        m.d.sync += [
            outer.eq(Cat(low, high)),
            inner.eq(inner_a + inner_b),
            self.product[:_HALF].eq(outer[:_HALF]),
            self.product[_HALF:].eq(outer[_HALF:].as_signed() + inner),
        ]
        return m

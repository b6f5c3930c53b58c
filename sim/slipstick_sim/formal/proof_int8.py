"""The int8 product for look-up tables: equal to ``*`` for all operands."""

from amaranth.hdl import Assert, Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.numbers.int8 import Int8

from .registry import Proof


class ProductOfTables(wiring.Component):
    """The recurrence that defines a product, over the highest bit set in the weight.

    A solver takes long to compare the product with ``*`` itself, but no time for this: nothing
    times zero is nothing, and a weight's highest bit adds the activation, shifted, to the product
    with that bit cleared. By induction over the number of bits set the product is that of ``*``.
    """

    activation: Signal
    weight: Signal

    def __init__(self) -> None:
        super().__init__({"activation": In(Int8.operand), "weight": In(Int8.operand)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = Int8.operand.width
        product = Int8(multiplier="lut").product
        whole = Signal(signed(2 * bits))
        m.d.comb += [
            whole.eq(product(self.activation, self.weight)),
            Assert((self.weight != 0) | (whole == 0), "times zero is not zero"),
        ]
        for k in range(bits):
            rest = Signal(signed(bits), name=f"rest_{k}")
            place = Const(-(1 << k) if k == bits - 1 else 1 << k, signed(bits + 1))
            step = self.activation * place
            m.d.comb += rest.eq(self.weight[:k])
            with m.If(self.weight[k] & ~self.weight[k + 1 :].any()):
                m.d.comb += Assert(
                    whole == product(self.activation, rest) + step, f"bit {k} is not counted"
                )
        return m


PROOFS = (Proof(name="int8_lut_product", component=ProductOfTables, depth=1, bounded=True),)

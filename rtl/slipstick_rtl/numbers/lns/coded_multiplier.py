"""Shares what multipliers by logarithmic weights have in common: weight, ports, products."""

from abc import abstractmethod
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .antilogarithms import Antilogarithms
from .formats import Lns


def element_code(lns: Lns) -> data.StructLayout:
    """An operand inside the array; zero has magnitude and sign 0."""
    bits = lns.exponent_bits
    return data.StructLayout({"magnitude": bits, "negative": 1, "present": 1})


def decode(lns: Lns, code: Any) -> Value:
    """``element_code`` of an ordered code; combinational."""
    bits = lns.exponent_bits
    low, negative = code[:bits], code[bits]
    magnitude = ((low ^ negative.replicate(bits)) + negative)[:bits]
    return Cat(magnitude, negative, low.any())


def product_layout(bits: int) -> data.StructLayout:
    """A product: ``bits`` where ``mask`` is 1, 0 elsewhere, negated if it is ``negative``."""
    return data.StructLayout({"bits": bits, "mask": bits, "negative": 1})


class CodedMultiplier(wiring.Component):
    """P products; their last step is left to the sum.

    Parameters
    ----------
    activation : StructLayout
        Of an activation inside the array.
    arithmetic : Antilogarithms
    pixels : int
        P.

    Members
    -------
    activations, weight, swap, swap_late : In
        As of :class:`...number_format.ElementMultiplier`.
    products : Out
        [P] of ``product_layout``.
    """

    activations: data.View
    weight: Signal
    swap: Signal
    swap_late: Signal
    products: data.View

    def __init__(
        self, *, activation: data.StructLayout, arithmetic: Antilogarithms, pixels: int
    ) -> None:
        self._activation, self._pixels = activation, pixels
        self._weight = element_code(arithmetic.lns)
        product = product_layout(arithmetic.product_bits)
        super().__init__(
            {
                "activations": In(data.ArrayLayout(activation.size, pixels)),
                "weight": In(self._weight.size),
                "swap": In(1),
                "swap_late": In(1),
                "products": Out(data.ArrayLayout(product, pixels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = Signal(self._weight, reset_less=True)
        with m.If(self.swap):
            m.d.sync += Value.cast(active).eq(self.weight)
        for p in range(self._pixels):
            activation = Signal(self._activation, name=f"activation_{p}")
            m.d.comb += Value.cast(activation).eq(self.activations[p])
            bits, mask, sign = self.multiply(m, platform, p, activation, active)
            product = self.products[p]
            m.d.comb += [product.bits.eq(bits), product.mask.eq(mask), product.negative.eq(sign)]
        return m

    @abstractmethod
    def multiply(
        self, m: Module, platform: object, p: int, activation: data.View, active: data.View
    ) -> tuple[Value, Value, Value]:
        """Bits, mask and sign of pixel ``p``'s product."""

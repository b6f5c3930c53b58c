"""The multipliers inside processing elements: one weight, P activations a cycle."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, ShapeLike, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..primitives.delay import delay
from ..primitives.multiplier18 import Multiplier18
from . import radix4

MULTIPLIER_LATENCY = Multiplier18.latency
"""Cycles from activations to products, of every multiplier: columns of all kinds stand together."""

OPERAND = signed(8)
PRODUCT = signed(16)


def multiplier_ports(*, stored_weight: ShapeLike, pixels: int) -> Mapping[str, Any]:
    """The ports that elements' multipliers have in common.

    activations : In
        P operands.
    weight : In
        The captured weight; it stays for two cycles from ``swap`` on.
    swap : In
        The weight is to work from the next cycle's activations on.
    products : Out
        [P], ``MULTIPLIER_LATENCY`` cycles after the activations.
    """
    return {
        "activations": In(data.ArrayLayout(OPERAND, pixels)),
        "weight": In(stored_weight),
        "swap": In(1),
        "products": Out(data.ArrayLayout(PRODUCT, pixels)),
    }


class BlockMultiplier(wiring.Component):
    """P products by :class:`Multiplier18`: DSP blocks with all their registers.

    Parameters
    ----------
    pixels : int
        P.

    Members
    -------
    activations, weight, swap, products
        As ``multiplier_ports`` has them.
    """

    activations: data.View
    weight: Signal
    swap: Signal
    products: data.View

    def __init__(self, *, pixels: int) -> None:
        self._pixels = pixels
        super().__init__(multiplier_ports(stored_weight=OPERAND, pixels=pixels))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # the blocks' own registers take it a cycle later, with the activations
        active = Signal(OPERAND, reset_less=True)
        with m.If(self.swap):
            m.d.sync += active.eq(self.weight)
        for p in range(self._pixels):
            m.submodules[f"product_{p}"] = product = Multiplier18(a=OPERAND, b=OPERAND)
            m.d.comb += [
                product.a.eq(self.activations[p]),
                product.b.eq(active),
                self.products[p].eq(product.p),
            ]
        return m


class DigitMultiplier(wiring.Component):
    """P products, less the weight's correction, in look-up tables (:mod:`.radix4`).

    Parameters
    ----------
    pixels : int
        P.

    Members
    -------
    activations, weight, swap, products
        As ``multiplier_ports`` has them; the weight in base-four digits.
    """

    activations: data.View
    weight: Signal
    swap: Signal
    products: data.View

    def __init__(self, *, pixels: int) -> None:
        self._pixels = pixels
        super().__init__(multiplier_ports(stored_weight=radix4.CODE_BITS, pixels=pixels))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = Signal(radix4.CODE_BITS, reset_less=True)
        with m.If(delay(m, self.swap, 1, "swap", reset_less=True)):
            m.d.sync += active.eq(self.weight)
        for p in range(self._pixels):
            operand = delay(m, self.activations[p], 1, f"operand_{p}", reset_less=True)
            low = Signal(signed(radix4.HALF_BITS), name=f"low_{p}", reset_less=True)
            high = Signal(signed(radix4.HALF_BITS), name=f"high_{p}", reset_less=True)
            product = Signal(PRODUCT, name=f"product_{p}", reset_less=True)
            sums = radix4.halves(operand, active)
            m.d.sync += [low.eq(sums[0]), high.eq(sums[1]), product.eq(radix4.whole(low, high))]
            m.d.comb += Value.cast(self.products[p]).eq(product)
        return m


ElementMultiplier = BlockMultiplier | DigitMultiplier

"""The multipliers inside processing elements: one weight, P activations a cycle."""

from abc import abstractmethod
from typing import ClassVar

from amaranth.hdl import Cat, Module, ShapeLike, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..primitives.carry_sum import Operand, carry_sum
from ..primitives.delay import delay
from ..primitives.multiplier18 import Multiplier18
from . import radix4

OPERAND = signed(8)
PRODUCT = signed(16)


class Int8Multiplier(wiring.Component):
    """Defines the members, the latencies and the weight's shape that all back-ends have.

    Parameters
    ----------
    pixels : int
        P.

    Members
    -------
    activations : In
        P operands.
    weight : In
        The captured weight; it stays for two cycles from ``swap`` on.
    swap, swap_late : In
        The weight is to work from the next cycle's activations on; the same, a cycle later.
    products : Out
        [P], ``latency`` cycles after the activations.
    ones : Out
        With the products: if both bits are 1, each of them lacks a one.
    """

    latency: ClassVar[int]
    """Cycles from activations to products."""

    swap_cycles: ClassVar[int] = 0
    """Cycles by which a captured weight is taken later than the swap says."""

    stored_weight: ClassVar[ShapeLike] = OPERAND
    """Shape of a weight inside an element."""

    activations: data.View
    weight: Signal
    swap: Signal
    swap_late: Signal
    products: data.View
    ones: Signal

    def __init__(self, *, pixels: int) -> None:
        self._pixels = pixels
        super().__init__(
            {
                "activations": In(data.ArrayLayout(OPERAND, pixels)),
                "weight": In(self.stored_weight),
                "swap": In(1),
                "swap_late": In(1),
                "products": Out(data.ArrayLayout(PRODUCT, pixels)),
                "ones": Out(2),
            }
        )

    @abstractmethod
    def elaborate(self, platform: object) -> Module:
        """Builds the multiplier; each back-end in its own way."""


class BlockMultiplier(Int8Multiplier):
    """P products by :class:`Multiplier18`: DSP blocks with all their registers."""

    latency = Multiplier18.latency

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


class DigitMultiplier(Int8Multiplier):
    """P products in look-up tables (:mod:`.radix4`); the weight is kept in base-four digits."""

    latency = 2
    """The last addition is left to the cycle that sums the products."""

    swap_cycles = 1
    stored_weight = unsigned(radix4.CODE_BITS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = Signal(radix4.CODE_BITS, reset_less=True)
        with m.If(self.swap_late):
            m.d.sync += active.eq(self.weight)

        def late(digit: int, cycles: int) -> radix4.Ones:
            bits = enumerate(radix4.ones(active, digit))
            name = f"ones_{digit}"
            one, two = (delay(m, b, cycles, f"{name}_{k}", reset_less=True) for k, b in bits)
            return one, two

        m.d.comb += self.ones.eq(Cat(late(0, 1)))
        ones_of_high = late(2, 1)
        for p in range(self._pixels):

            def add(
                name: str, a: Operand, b: Operand, width: int, ones: radix4.Ones, p: int = p
            ) -> Value:
                return carry_sum(m, platform, f"{name}_{p}", a, b, width=width, ones=ones)

            operand = delay(m, self.activations[p], 1, f"operand_{p}", reset_less=True)
            low = Signal(radix4.HALF_BITS, name=f"low_{p}", reset_less=True)
            high = Signal(radix4.HALF_BITS, name=f"high_{p}", reset_less=True)
            sums = radix4.halves(operand, active, add)
            m.d.sync += [low.eq(sums[0]), high.eq(sums[1])]
            # no register: 16 bits an element are more than a second carry chain's time is worth
            product = radix4.whole(low, high, ones_of_high, add)
            m.d.comb += Value.cast(self.products[p]).eq(product)
        return m


class CellMultiplier(Int8Multiplier):
    """P products in standard cells: a ``*`` between its operands' registers and its own."""

    latency = 2
    swap_cycles = 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = Signal(OPERAND, reset_less=True)
        with m.If(self.swap_late):
            m.d.sync += active.eq(self.weight)
        for p in range(self._pixels):
            # synthesis merges it with the element's own, on its way to the right
            operand = delay(m, self.activations[p], 1, f"operand_{p}", reset_less=True)
            product = Signal(PRODUCT, name=f"product_{p}")
            m.d.comb += product.eq(operand * active)
            late = delay(m, product, self.latency - 1, f"product_{p}", reset_less=True)
            m.d.comb += self.products[p].eq(late)
        return m


class PairedCellMultiplier(CellMultiplier):
    """P products in standard cells, without a register behind: it is that of two products' sum."""

    latency = 1

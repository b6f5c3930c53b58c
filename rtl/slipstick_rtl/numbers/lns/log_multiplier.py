"""The multiplier of a logarithmic element: an addition, a small table, a shift.

A product is ``antilog[s mod 2^F] << (s div 2^F)``, less the places that are dropped, with s the sum
of the operands' magnitudes. The shift is split at G, a power of two: what lies below G belongs to
the table, or is shifted by a few multiplexers, and makes a number ``q`` of at most 2 G bits. What
is left is a shift by c groups of G places, and there

    group g of the product = low half of q if g = c, high half of q if g = c + 1, else nothing

so that it takes one multiplexer, which looks at the lowest bit of c only, and a mask for the group.
The mask and the sign are left to the gates of the carry chain that adds the product to the sum
(:mod:`...primitives.carry_sum`), where they cost nothing.
"""

from typing import Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ...primitives.constant_table import look_up
from ...primitives.delay import delay
from .array_arithmetic import ArrayArithmetic

_TABLE_INPUTS = 4
"""Bits that a look-up table decides on: so many of the sum address the antilogarithms."""

_SINGLE_CYCLE_PLACES = 1 << 4
"""Sums below it make a product in the cycle that adds it."""


def element_code(arithmetic: ArrayArithmetic) -> data.StructLayout:
    """An operand inside the array; zero has magnitude and sign 0."""
    bits = arithmetic.lns.exponent_bits
    return data.StructLayout({"magnitude": bits, "negative": 1, "present": 1})


def decode(arithmetic: ArrayArithmetic, code: Any) -> Value:
    """``element_code`` of an ordered code; combinational."""
    bits = arithmetic.lns.exponent_bits
    low, negative = code[:bits], code[bits]
    magnitude = ((low ^ negative.replicate(bits)) + negative)[:bits]
    return Cat(magnitude, negative, low.any())


def product_layout(arithmetic: ArrayArithmetic) -> data.StructLayout:
    """A product: ``bits`` where ``mask`` is 1, 0 elsewhere, negated if it is ``negative``."""
    bits = arithmetic.product_bits
    return data.StructLayout({"bits": bits, "mask": bits, "negative": 1})


def _group_bits(arithmetic: ArrayArithmetic) -> int:
    """log2 of G: a table's entry, shifted by less than G, has at most 2 G bits."""
    return ceil_log2(arithmetic.antilog_places)


def _tabled_bits(arithmetic: ArrayArithmetic) -> int:
    """Of the shift below G, the bits that address the table."""
    spare = max(0, _TABLE_INPUTS - arithmetic.lns.fraction_bits)
    return min(spare, _group_bits(arithmetic))


def _stages(arithmetic: ArrayArithmetic) -> tuple[int, int]:
    """Registers behind the table, and behind the shift."""
    deep = _tabled_bits(arithmetic) < _group_bits(arithmetic)
    return int(deep), int(deep)


def multiplier_latency(arithmetic: ArrayArithmetic) -> int:
    """Cycles from activations to products: the sum of the logarithms, and what follows."""
    return 1 + sum(_stages(arithmetic))


class LogMultiplier(wiring.Component):
    """P products; their last step is left to the sum.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    pixels : int
        P.

    Members
    -------
    activations, weight, swap, swap_late : In
        As of :class:`...number_format.ElementMultiplier`.
    products : Out
        [P] of ``product_layout``, ``multiplier_latency`` cycles after the activations.
    """

    activations: data.View
    weight: Signal
    swap: Signal
    swap_late: Signal
    products: data.View

    def __init__(self, *, arithmetic: ArrayArithmetic, pixels: int) -> None:
        self._arithmetic, self._pixels = arithmetic, pixels
        code = element_code(arithmetic)
        super().__init__(
            {
                "activations": In(data.ArrayLayout(code.size, pixels)),
                "weight": In(code.size),
                "swap": In(1),
                "swap_late": In(1),
                "products": Out(data.ArrayLayout(product_layout(arithmetic), pixels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code = element_code(self._arithmetic)
        active = Signal(code, reset_less=True)
        with m.If(self.swap):
            m.d.sync += Value.cast(active).eq(self.weight)
        for p in range(self._pixels):
            activation = Signal(code, name=f"activation_{p}")
            m.d.comb += Value.cast(activation).eq(self.activations[p])
            total = Signal(len(active.magnitude) + 1, name=f"total_{p}", reset_less=True)
            present = Signal(name=f"present_{p}", reset_less=True)
            negative = Signal(name=f"negative_{p}", reset_less=True)
            both = activation.present & active.present
            m.d.sync += [
                total.eq(activation.magnitude + active.magnitude),
                present.eq(both),
                negative.eq(both & (activation.negative ^ active.negative)),
            ]
            bits, mask, sign = self._product(m, p, total, present, negative)
            product = self.products[p]
            m.d.comb += [product.bits.eq(bits), product.mask.eq(mask), product.negative.eq(sign)]
        return m

    def _product(
        self, m: Module, p: int, total: Value, present: Value, negative: Value
    ) -> tuple[Value, Value, Value]:
        """Bits, mask and sign of the product of a sum of logarithms."""
        arithmetic = self._arithmetic
        fraction, group = arithmetic.lns.fraction_bits, _group_bits(arithmetic)
        tabled = _tabled_bits(arithmetic)
        behind_table, behind_shift = _stages(arithmetic)

        def later(value: Value, cycles: int, name: str) -> Value:
            return delay(m, value, cycles, f"{name}_{p}", reset_less=True)

        entry = later(self._look_up(total[: fraction + tabled]), behind_table, "entry")
        rest = Cat(total[fraction + tabled :], present, negative)
        rest = later(rest, behind_table, "rest")
        shift, present, negative = rest[:-2], rest[-2], rest[-1]
        for k in range(min(group - tabled, len(shift))):
            places = 1 << (tabled + k)
            entry = Mux(shift[k], Cat(Const(0, places), entry), entry)
        bits, mask = self._spread(entry, shift[group - tabled :], present)
        late = later(Cat(*bits, mask, negative), behind_shift, "product")
        size = len(bits)
        return late[:size], late[size : 2 * size], late[-1]

    def _look_up(self, index: Value) -> Value:
        """The antilogarithm of the lowest bits of a sum, shifted by what they have beyond F."""
        fraction = self._arithmetic.lns.fraction_bits
        steps = np.arange(1 << len(index))
        entries = self._arithmetic.antilog[steps & (1 << fraction) - 1] << (steps >> fraction)
        return look_up(entries, index)

    def _spread(self, entry: Value, groups: Value, present: Value) -> tuple[list[Value], Value]:
        """Bits of the product, and the mask: ``entry`` shifted by ``groups`` times G places."""
        arithmetic = self._arithmetic
        size = 1 << _group_bits(arithmetic)
        largest, first = arithmetic.largest_shift // size, arithmetic.dropped_places
        halves = (entry[:size], entry[size:])
        bits: list[Value] = []
        masks: list[Value] = []
        for place in range(first, first + arithmetic.product_bits):
            group, index = divmod(place, size)
            # the shifts that bring one of the entry's halves here, and what they bring
            brought = {
                group - k: half[index]
                for k, half in enumerate(halves)
                if index < len(half) and 0 <= group - k <= largest
            }
            low, *high = brought.values()
            bits.append(Mux(groups[0] == group & 1, low, high[0]) if high else low)
            masks.append(present & Cat(groups == shift for shift in brought).any())
        return bits, Cat(masks)

"""Two neighbouring columns' elements of one row: one multiplication makes both products."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers import packing
from ..numbers.number_format import NumberFormat
from ..primitives.carry_sum import Operand, carry_sum
from ..primitives.delay import delay
from ..primitives.fanout import copy_of
from ..primitives.multiplier18 import Multiplier18
from .pair_multiplier import PairMultiplier, pair_sums

HOP_CYCLES = 2
"""Cycles from a pair's activations to its right neighbour's: one a column."""

PAIR_LATENCY = Multiplier18.latency + 1
"""Cycles from a pair's activations to the sums that hold their products, but ``floor``."""

UNPACK_CYCLES = 2
"""Cycles from the last pair's sums to those of single columns."""


class PackedPair(wiring.Component):
    """As :class:`.ProcessingElement`, for two columns whose activations come at the same time.

    Parameters
    ----------
    pixels : int
        P.
    rows_above : int
        Whose products ``partial_sums`` holds; with 0 they are not looked at.

    Members
    -------
    activations, swap, weight, capture
        As an element's.
    activations_out, swap_out : Out
        ``HOP_CYCLES`` later.
    partial_sums, partial_sums_out
        As an element's, but in three parts.
    """

    activations: data.View
    swap: Signal
    weight: data.View
    capture: Signal
    partial_sums: data.View
    activations_out: data.View
    swap_out: Signal
    partial_sums_out: data.View

    def __init__(self, *, pixels: int, rows_above: int) -> None:
        self._pixels, self._rows_above = pixels, rows_above
        operands = data.ArrayLayout(packing.ACTIVATION, pixels)
        super().__init__(
            {
                "activations": In(operands),
                "swap": In(1),
                "weight": In(packing.STORED),
                "capture": In(1),
                "partial_sums": In(data.ArrayLayout(pair_sums(max(1, rows_above)), pixels)),
                "activations_out": Out(operands),
                "swap_out": Out(1),
                "partial_sums_out": Out(data.ArrayLayout(pair_sums(rows_above + 1), pixels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.multiplier = multiplier = PairMultiplier(pixels=self._pixels)
        captured, active = (
            Signal(packing.STORED, name=name, reset_less=True) for name in ("captured", "active")
        )
        with m.If(self.capture):
            m.d.sync += captured.eq(self.weight)
        with m.If(self.swap):
            m.d.sync += active.eq(captured)
        late = delay(m, self.activations, 1, "late", reset_less=True)
        swap = copy_of(m, platform, self.swap, "swap_late")
        m.d.comb += [
            multiplier.activations.eq(self.activations),
            multiplier.late.eq(late),
            multiplier.active.eq(active),
            self.swap_out.eq(copy_of(m, platform, swap, "swap_copy")),
            self.activations_out.eq(delay(m, late, 1, "activations", reset_less=True)),
        ]
        for pixel in range(self._pixels):
            for part in ("low", "high", "floor"):
                self._add(m, platform, pixel, part, multiplier.products[pixel][part])
        return m

    def _add(self, m: Module, platform: object, pixel: int, part: str, product: Any) -> None:
        """One part of the product to the sums passing."""
        shape = self.partial_sums_out[pixel][part].shape()
        total = Signal(shape, name=f"{part}_{pixel}", reset_less=True)
        if self._rows_above:
            above = self.partial_sums[pixel][part]
            m.d.sync += total.eq(
                carry_sum(
                    m,
                    platform,
                    f"{part}_sum_{pixel}",
                    Operand(above),
                    Operand(product),
                    width=len(total),
                )
            )
        else:
            m.d.sync += total.eq(product)
        m.d.comb += self.partial_sums_out[pixel][part].eq(total)


class Unpacker(wiring.Component):
    """The sums of a pair of columns from their three parts, ``UNPACK_CYCLES`` later.

    Parameters
    ----------
    number_format : NumberFormat
    rows : int
        Whose products the sums hold.

    Members
    -------
    i : In
        Of the last pair; its ``floor`` comes a cycle after the others.
    o : Out
        [2] columns; the second is a cycle later than the first.
    """

    i: data.View
    o: data.View

    def __init__(self, *, number_format: NumberFormat, rows: int) -> None:
        self._total = number_format.partial_sum(rows)
        super().__init__({"i": In(pair_sums(rows)), "o": Out(data.ArrayLayout(self._total, 2))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = delay(m, self.i.low, 1, "low", reset_less=True)
        high = delay(m, self.i.high, 1, "high", reset_less=True)
        floor, bits = self.i.floor, packing.LOW_BITS
        width = self._total.width
        columns = [Signal(self._total, name=f"column_{k}", reset_less=True) for k in range(2)]
        one = Const(1, 1)
        upper = carry_sum(
            m, platform, "upper", Operand(floor), Operand(low[bits:]), width=width - bits
        )
        difference = carry_sum(
            m,
            platform,
            "difference",
            Operand(high),
            Operand(floor, flip=one),
            width=width,
            ones=(one, one),
        )
        m.d.sync += [columns[0].eq(Cat(low[:bits], upper)), columns[1].eq(difference)]
        m.d.comb += [
            self.o[0].eq(columns[0]),
            self.o[1].eq(delay(m, columns[1], 1, "second", reset_less=True)),
        ]
        return m

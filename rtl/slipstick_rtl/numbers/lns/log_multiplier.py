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

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.utils import ceil_log2

from ...primitives.constant_table import small_look_up
from ...primitives.delay import delay
from .array_arithmetic import ArrayArithmetic
from .coded_multiplier import CodedMultiplier, element_code

_TABLE_INPUTS = 4
"""Bits that a look-up table decides on: so many of the sum address the antilogarithms."""


def _group_bits(arithmetic: ArrayArithmetic) -> int:
    """log2 of G: a table's entry, shifted by less than G, has at most 2 G bits."""
    return ceil_log2(arithmetic.antilog_places)


def _tabled_bits(arithmetic: ArrayArithmetic) -> int:
    """Counts the bits of the shift below G that address the table."""
    spare = max(0, _TABLE_INPUTS - arithmetic.lns.fraction_bits)
    return min(spare, _group_bits(arithmetic))


def _shift_levels(arithmetic: ArrayArithmetic) -> list[int]:
    """Places of the shifts between the table and the groups."""
    bits = arithmetic.largest_shift.bit_length()
    levels = range(_tabled_bits(arithmetic), min(_group_bits(arithmetic), bits))
    return [1 << level for level in levels]


def _registered_levels(arithmetic: ArrayArithmetic) -> set[int]:
    """Shifts with a register behind: the middle one, and the last, as the sum takes a cycle."""
    count = len(_shift_levels(arithmetic))
    return {level for level in (count // 2 - 1, count - 1) if level >= 0}


def multiplier_latency(arithmetic: ArrayArithmetic, *, shifts_registered: bool = True) -> int:
    """Cycles from activations to products: the sum of the logarithms, and the shifts."""
    return 1 + (len(_registered_levels(arithmetic)) if shifts_registered else 0)


class LogMultiplier(CodedMultiplier):
    """P products of two logarithms, ``multiplier_latency`` cycles after the activations.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    pixels : int
        P.
    shifts_registered : bool
        There are registers behind the shifts; otherwise the product is combinational from the sum
        of the logarithms on.
    """

    def __init__(
        self, *, arithmetic: ArrayArithmetic, pixels: int, shifts_registered: bool = True
    ) -> None:
        self._arithmetic, self._shifts_registered = arithmetic, shifts_registered
        super().__init__(
            activation=element_code(arithmetic.lns), arithmetic=arithmetic, pixels=pixels
        )

    def multiply(
        self, m: Module, platform: object, p: int, activation: data.View, active: data.View
    ) -> tuple[Value, Value, Value]:
        """Adds the logarithms."""
        total = Signal(len(active.magnitude) + 1, name=f"total_{p}", reset_less=True)
        present = Signal(name=f"present_{p}", reset_less=True)
        negative = Signal(name=f"negative_{p}", reset_less=True)
        both = activation.present & active.present
        magnitude = activation.magnitude + active.magnitude
        differ = activation.negative ^ active.negative
        m.d.sync += present.eq(both)
        if self._shifts_registered:
            m.d.sync += [total.eq(magnitude), negative.eq(both & differ)]
            return self._product(m, platform, p, total, present, negative)
        # in standard cells a sum that nobody needs costs the energy of all that hangs on it
        with m.If(both):
            m.d.sync += [total.eq(magnitude), negative.eq(differ)]
        return self._product(m, platform, p, total, present, negative & present)

    def _product(
        self,
        m: Module,
        platform: object,
        p: int,
        total: Value,
        present: Value,
        negative: Value,
    ) -> tuple[Value, Value, Value]:
        """Bits, mask and sign of the product of a sum of logarithms."""
        arithmetic = self._arithmetic
        split = arithmetic.lns.fraction_bits + _tabled_bits(arithmetic)
        entry = self._look_up(m, platform, total[:split], f"table_{p}")
        rest = Cat(total[split:], present, negative)
        registered = _registered_levels(arithmetic) if self._shifts_registered else set()
        for k, places in enumerate(_shift_levels(arithmetic)):
            name = f"shifted_{places}_{p}"
            entry = shift_left(m, platform, entry, rest[0], places, name)
            rest = rest[1:]
            if k in registered:
                entry = delay(m, entry, 1, name, reset_less=True)
                rest = delay(m, rest, 1, f"rest_{places}_{p}", reset_less=True)
            elif not self._shifts_registered:
                entry = _named(m, entry, name)
        bits, mask = self._spread(entry, rest[:-2], rest[-2])
        return Cat(bits), mask, rest[-1]

    def _look_up(self, m: Module, platform: object, index: Value, name: str) -> Value:
        """The antilogarithm of the lowest bits of a sum, shifted by what they have beyond F."""
        fraction = self._arithmetic.lns.fraction_bits
        steps = np.arange(1 << len(index))
        entries = self._arithmetic.antilog[steps & (1 << fraction) - 1] << (steps >> fraction)
        return small_look_up(m, platform, entries, index, name)

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


def _named(m: Module, value: Value, name: str) -> Signal:
    """A signal of this value: expressions that use it twice per bit do not grow."""
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def shift_left(
    m: Module, platform: object, number: Value, shifts: Value, places: int, name: str
) -> Value:
    """``number`` shifted to the left, or not; a look-up table a bit."""
    bits: list[Value] = []
    for place in range(len(number) + places):
        stays = number[place] if place < len(number) else None
        moves = number[place - places] if place >= places else None
        if stays is not None and moves is not None:
            choice = Cat(stays, moves, shifts)
            chosen = (k >> (k >> 2) & 1 for k in range(8))
            bits.append(small_look_up(m, platform, chosen, choice, f"{name}_{place}"))
        elif stays is not None:
            bits.append(stays & ~shifts)
        else:
            bits.append(Const(0, 1) if moves is None else moves & shifts)
    return Cat(bits)

"""Knows where the next byte of a compact link's transfer lies: one address for all commands."""

from collections.abc import Iterable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import Configuration
from ..protocol import REGION_PITCH
from ..spaces import spaces_of, unit_count

SCAN_CYCLES = REGION_PITCH + 1
"""In which a description is read: a cycle after it is asked for, a byte comes."""

TABLE_SHIFT = 2
"""The table has the bytes of a DEFINE's payload so many places lower, modulo 16: then a region's
address comes in the same cycles as that of a WRITE or READ, which is in its payload."""

_ADDRESS, _RUN, _RUNS, _PLANES, _GAP, _PLANE_GAP = 1, 4, 6, 8, 10, 12
"""Places of a region's fields in the table."""
_COUNT = REGION_PITCH - 1
"""Place of the count's low byte; the high one is at 0."""
_READ_COUNT = 4
"""Place of a READ's count in its payload, whose address stands at ``_ADDRESS``, too."""


def address_bits(configuration: Configuration) -> int:
    """Bits of an address that lies within a memory, or is one behind its end."""
    return max(unit_count(configuration, space) for space in spaces_of(configuration)).bit_length()


class CompactWalker(wiring.Component):
    """Reads a description byte by byte and keeps the address of the byte or unit at hand.

    It keeps no region's fields: at the end of each run it reads them again, in ``SCAN_CYCLES``.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    start : In
        Begins with what is described; else the walk goes on.
    direct : In
        The description is a payload's, with an address only; else a region of the table. Holds.
    counting : In
        Besides, with ``direct``: the count of a READ is added to the address. Holds.
    place : Out(5)
        Of the byte that is wanted, modulo 16, in the payload or the table.
    byte : In(8)
        The one that was wanted in the cycle before.
    step : In
        To the next unit. Not while ``busy``.
    busy : Out
    count_low, count_high : Out
        Strobes: ``byte`` is of the region's count.
    address : Out
        The highest bit says that it is too large, and stays.
    ended : Out
        The region has no such byte.
    """

    start: Signal
    direct: Signal
    counting: Signal
    place: Signal
    byte: Signal
    step: Signal
    busy: Signal
    count_low: Signal
    count_high: Signal
    address: Signal
    ended: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._bits = address_bits(configuration)
        self._run_left = Signal(16)
        # that the plane has before the one at hand, and planes
        self._runs, self._planes = Signal(16), Signal(16)
        self._whole = Signal()
        # what has come of a number is the counted one; a plane ends
        self._same = Signal()
        self._plane = Signal()
        super().__init__(
            {
                **dict.fromkeys(("start", "direct", "counting", "step"), In(1)),
                "place": Out(SCAN_CYCLES.bit_length()),
                "byte": In(8),
                **dict.fromkeys(("busy", "count_low", "count_high", "ended"), Out(1)),
                "address": Out(self._bits + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = self.place[4]
        run = self._run_left
        with m.If(self.busy):
            m.d.sync += self.place.eq(Mux(last, 0, self.place + 1))
            m.d.sync += self.busy.eq(~last)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self._whole.eq(1), self._plane.eq(0), self.ended.eq(0)]
        with m.Elif(self.step & ~self.direct):
            m.d.sync += run.eq(run - 1)
            with m.If(run == 0):
                m.d.sync += [self.busy.eq(1), self._whole.eq(0)]
        self._count(m)
        self._add(m)
        return m

    def _comes(self, *places: int) -> Value:
        """The byte is the one of such a place."""
        return Cat(self.place == place + 1 for place in places).any() & self.busy

    def _count(self, m: Module) -> None:
        """Reads the length of the run, less one; tells whether a plane has ended, or the region."""
        for k in range(2):
            with m.If(self._comes(_RUN + k) & ~self.direct):
                m.d.sync += self._run_left.word_select(k, 8).eq(self.byte)
        number = Cat(self._runs, self._planes)
        same = self.byte == number.word_select((self.place - _RUNS - 1)[:2], 8)
        m.d.sync += self._same.eq(same & (self._same | self._comes(_RUNS, _PLANES)))
        with m.If(self._comes(_RUNS + 1)):
            m.d.sync += self._plane.eq(same & self._same & ~self._whole)
        with m.If(self._comes(_PLANES + 1)):
            m.d.sync += self.ended.eq(self.ended | same & self._same & self._plane)
        counted = self._comes(_GAP) & ~self._whole
        with m.If(self.start | counted & self._plane):
            m.d.sync += self._runs.eq(0)
        with m.Elif(counted):
            m.d.sync += self._runs.eq(self._runs + 1)
        with m.If(self.start):
            m.d.sync += self._planes.eq(0)
        with m.Elif(counted & self._plane):
            m.d.sync += self._planes.eq(self._planes + 1)
        region = self._whole & ~self.direct
        m.d.comb += [
            self.count_low.eq(self._comes(_COUNT) & region),
            self.count_high.eq(self._comes(0) & region),
        ]

    def _add(self, m: Module) -> None:
        """Bytes are added to the address as they come; the one that has begun is 0."""
        bits = self._bits
        next_run = ~self._whole & ~self._plane

        def at(k: int) -> Value:
            read_count = self._comes(_READ_COUNT + k) & self.direct & self.counting
            return Cat(
                self._comes(_ADDRESS + k) & self._whole,
                read_count,
                self._comes(_GAP + k) & next_run,
                self._comes(_PLANE_GAP + k) & self._plane,
            ).any()

        low, middle, top = at(0), at(1), self._comes(_ADDRESS + 2) & self._whole
        first = Mux(low, self.byte, Cat(self.step, Const(0, 7)))
        parts: Iterable[Value] = (
            first,
            self.byte & middle.replicate(8),
            self.byte & top.replicate(8),
        )
        addend = Cat(*parts)
        total = Signal(bits + 1)
        m.d.comb += total.eq(self.address[:bits] + addend[:bits])
        too_large = self.address[bits] | total[bits] | addend[bits:].any()
        with m.If(self.start):
            m.d.sync += self.address.eq(0)
        with m.Else():
            m.d.sync += self.address.eq(Cat(total[:bits], too_large))

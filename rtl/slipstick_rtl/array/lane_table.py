"""The lane table: which input byte each row of the array takes, for a reduction tile."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION
from ..primitives.delay import delay
from ..primitives.fanout import copy_of
from ..primitives.turn_counter import TurnCounter

SWAP_CYCLES = 2
"""Cycles from ``swap`` until the lanes are at work: one more would lose a lane."""

_GROUPS = 4
"""Groups of lanes, each with registers of its own that move its lanes."""


def lane_layout(address_bits: int) -> data.StructLayout:
    """A lane: its tap's distance in rows and columns, its byte's distance in memory."""
    return data.StructLayout({"y": 12, "x": 12, "offset": address_bits})


class LaneTable(wiring.Component):
    """Walks the flattened reduction (ky, kx, c) and holds a tile of it at work.

    One lane a cycle, or W of them with ``whole_words``: then they are of one tap. The first tile of
    ``pairs`` has R / 2 lanes, twice.

    Parameters
    ----------
    configuration : Configuration
    address_bits : int
        Offsets are kept modulo 2^address_bits.

    Members
    -------
    instructions : In(stream)
        CONVOLVEs.
    prepared, next_prepared : Out
        A tile can be swapped in, in the cycle of its last lanes already; in the next cycle it can.
    swap : In
        Brings the prepared tile to work, ``SWAP_CYCLES`` cycles later; only while ``prepared``.
    lanes : Out
        [R] lanes at work.
    """

    prepared: Signal
    next_prepared: Signal
    swap: Signal
    lanes: data.View
    instructions: stream.Interface

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        self._takes_pairs = configuration.takes_pairs
        self._words, self._width = configuration.tile_words, configuration.weight_rows
        self._lane = lane_layout(address_bits)
        self._lanes = data.ArrayLayout(self._lane, configuration.rows)
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "prepared": Out(1),
                "next_prepared": Out(1),
                "swap": In(1),
                "lanes": Out(self._lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fields = Signal(MATRIX_INSTRUCTION, reset_less=True)
        holding, final, walking = Signal(), Signal(), Signal()
        tiles_left = Signal(16, reset_less=True)
        start, last, ends = Signal(), Signal(), Signal()
        completed = Signal()
        given: data.View = self.instructions.payload
        half = Signal()
        first_half = start & given.pairs if self._takes_pairs else Const(0, 1)
        place = self._count(m, fields, walking, last, completed, first_half)
        m.d.comb += [
            ends.eq(walking & last & final),
            self.instructions.ready.eq(~holding | ends),
            start.eq(self.instructions.valid & self.instructions.ready),
        ]
        with m.If(walking & last):
            m.d.sync += [tiles_left.eq(tiles_left - 1), final.eq(tiles_left == 1), half.eq(0)]
        with m.If(start):
            m.d.sync += [
                fields.eq(given),
                tiles_left.eq(given.reduction_tiles - 1),
                final.eq(given.reduction_tiles == 1),
                holding.eq(1),
                half.eq(first_half),
            ]
        with m.Elif(ends):
            m.d.sync += holding.eq(0)
        more = start | (holding & ~ends)
        free = ~self.prepared | self.swap
        next_walking = (walking & ~last) | (more & free)
        m.d.sync += walking.eq(next_walking)
        m.d.comb += self.next_prepared.eq(completed | (self.prepared & ~self.swap))
        m.d.sync += self.prepared.eq(self.next_prepared)
        lane = self._walk(m, fields, start, walking, last)
        next_whole = Mux(start, given.whole_words, fields.whole_words)
        next_place = Mux(
            first_half, self._lanes.length // 2, Mux(walking, self._behind(place, fields), place)
        )
        moves = next_walking & self._is_taken(0, next_place, next_whole)
        taken = [walking & self._is_taken(k, place, fields.whole_words) for k in range(self._width)]
        self._hold(m, platform, lane, moves, taken, fields.whole_words, half)
        return m

    def _behind(self, place: Value, fields: Any) -> Value:
        """The place after this one: a lane on, or a word of them."""
        return place + (Mux(fields.whole_words, self._width, 1) if self._width > 1 else 1)

    def _is_taken(self, k: int, place: Value, whole: Value) -> Value:
        """Tells whether a lane at ``place`` fills the word's lane k; with lane 0 all lanes move."""
        slot = place[: exact_log2(self._width)]
        return whole | (slot == k) if self._width > 1 else Const(1, 1)

    def _count(
        self,
        m: Module,
        fields: Any,
        walking: Signal,
        last: Signal,
        completed: Signal,
        first_half: Value,
    ) -> Signal:
        """The place of the lane among the tile's; ``completed`` in the cycle before the last."""
        rows, step = self._words * self._width, self._width
        place = Signal(range(rows))
        before_last = Signal()
        whole = fields.whole_words if step > 1 else Const(0, 1)
        m.d.comb += [
            before_last.eq(place == Mux(whole, rows - 2 * step, rows - 2)),
            completed.eq(walking & before_last),
        ]
        with m.If(walking):
            # the last is known a step before, as much hangs on it
            m.d.sync += [place.eq(self._behind(place, fields)), last.eq(before_last)]
            # powers of two wrap
            if rows & (rows - 1):
                with m.If(last):
                    m.d.sync += place.eq(0)
        with m.If(first_half):
            m.d.sync += [place.eq(rows // 2), last.eq(0)]
        return place

    def _walk(self, m: Module, fields: Any, start: Signal, walking: Signal, last: Signal) -> Any:
        """The lane that is next."""
        lane, tap, row = (
            Signal(self._lane, name=name, reset_less=True) for name in ("lane", "tap", "row")
        )
        idle = Signal()
        given: data.View = self.instructions.payload
        m.submodules.channels = channels = TurnCounter(width=16, stride=self._width)
        m.submodules.kernel_x = kernel_x = TurnCounter(width=len(given.kernel_x))
        m.d.comb += [
            channels.start.eq(start),
            channels.turns.eq(given.channels),
            channels.strides_given.eq(given.whole_words),
            channels.strides.eq(fields.whole_words),
            channels.advance.eq(walking & ~idle),
            kernel_x.start.eq(start),
            kernel_x.turns.eq(given.kernel_x),
            kernel_x.advance.eq(channels.advance & channels.final),
        ]
        with m.If(start):
            m.d.sync += [lane.eq(0), tap.eq(0), row.eq(0), idle.eq(0)]
        with m.Elif(walking):
            aligned = fields.align_tap | (fields.align_row & kernel_x.final)
            with m.If(last):
                m.d.sync += idle.eq(0)
            with m.Elif(channels.final & ~idle):
                m.d.sync += idle.eq(aligned)
            with m.If(~idle):
                self._step(m, fields, (lane, tap, row), channels.final, kernel_x.final)
        return lane

    def _step(
        self, m: Module, fields: Any, nest: tuple, channels_end: Signal, kernel_end: Signal
    ) -> None:
        """The next lane, the tap that it belongs to, and the first tap of that kernel row."""
        lane, tap, row = nest
        next_row, next_tap = Signal(self._lane), Signal(self._lane)
        m.d.comb += [
            next_row.y.eq(row.y + fields.dilation_y),
            next_row.offset.eq(row.offset + fields.tap_step_y),
            next_tap.y.eq(tap.y),
            next_tap.x.eq(tap.x + fields.dilation_x),
            next_tap.offset.eq(tap.offset + fields.tap_step_x),
        ]
        with m.If(channels_end & kernel_end):
            m.d.sync += [lane.eq(next_row), tap.eq(next_row), row.eq(next_row)]
        with m.Elif(channels_end):
            m.d.sync += [lane.eq(next_tap), tap.eq(next_tap)]
        with m.Else():
            m.d.sync += lane.offset.eq(lane.offset + Mux(fields.whole_words, self._width, 1))

    def _hold(
        self,
        m: Module,
        platform: object,
        lane: Any,
        moves: Value,
        taken: list[Value],
        whole: Value,
        half: Signal,
    ) -> None:
        """The tile that is prepared, W lanes moving at a time, and the one at work.

        They stand along the whole array, so each few have a register of their own that moves them,
        with ``moves`` a cycle ahead, and one that brings them to work; meanwhile at most one new
        word is taken.
        """
        prepared = Signal(self._lanes, reset_less=True, name="prepared_lanes")
        working = Signal(self._lanes, reset_less=True)
        width, rows = self._width, self._lanes.length
        swap = delay(m, self.swap, SWAP_CYCLES - 2, "swap")
        group = -(-rows // _GROUPS)
        for first in range(0, rows, group):
            mine = range(first, min(first + group, rows))
            with m.If(copy_of(m, platform, moves, f"moves_{first}")):
                m.d.sync += [prepared[i].eq(prepared[i + width]) for i in mine if i + width < rows]
            with m.If(copy_of(m, platform, swap, f"swaps_{first}")):
                m.d.sync += [working[i].eq(prepared[i]) for i in mine]
        middle = range(rows // 2 - width, rows // 2) if self._takes_pairs else range(0)
        for k in range(width):
            with m.If(taken[k]):
                newest = Signal(self._lane, name=f"newest_{k}")
                m.d.comb += newest.eq(lane)
                if k:
                    m.d.comb += newest.offset.eq(lane.offset + Mux(whole, k, 0))
                m.d.sync += prepared[rows - width + k].eq(newest)
                if middle:
                    with m.If(half):
                        m.d.sync += prepared[middle[k]].eq(newest)
        m.d.comb += self.lanes.eq(working)

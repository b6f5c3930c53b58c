"""The pixel counter: walks the output pixels of a tile, P at a time, or in pairs."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION
from ..primitives.delay import delay
from .depthwise_turns import DepthwiseTurns, made_by_twos


@dataclass(frozen=True)
class _Cycle:
    """Describes a cycle: whether it is a row's last one, and how a depthwise group goes on.

    ``down``: the next cycle reads the lower half of the same stream column. ``next_down``: ``down``
    in the next cycle.
    """

    row_ends: Signal
    down: Value
    next_down: Value


class PixelCounter(wiring.Component):
    """Coordinates and window addresses of the P pixels of a group, one group a cycle.

    Where the configuration ``takes_pairs`` there are two windows: a pair's, or twice the same.
    With ``depthwise`` there is half a column of an input block each cycle, and only some of the
    cycles complete a pixel.

    Parameters
    ----------
    configuration : Configuration
    address_bits : int
        Addresses are kept modulo 2^address_bits.

    Members
    -------
    instruction : In
        A CONVOLVE, sampled with ``start`` and in the cycle before.
    start : In
        Go to the first group in the next cycle.
    pairs : In
        With ``start``: a group is two pixels in this tile.
    advance : In
        Go to the next group in the next cycle. If not, this one must be the last: coordinates and
        addresses go on all the same, as nothing is read there.
    y : Out
        Input row of the group's windows.
    x, base : Out
        [windows] input column and byte address of each window's first tap.
    index : Out
        Groups before this one: its place in an accumulator bank.
    last, next_last : Out
        This is the tile's last group, or there is none; so the next one.
    complete, half : Out
        There are sums for ``index``; a depthwise CONVOLVE reads the lower half of a column.
    block : Out(2)
        Of a depthwise CONVOLVE: a block of rows begins with this cycle; it is the first.
    """

    instruction: data.View
    start: Signal
    pairs: Signal
    advance: Signal
    y: Signal
    x: data.View
    base: data.View
    index: Signal
    last: Signal
    next_last: Signal
    complete: Signal
    half: Signal
    block: Signal

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        self._takes_pairs = configuration.takes_pairs
        self._takes_depthwise = configuration.takes_depthwise
        self._windows, self._pixels = configuration.windows, configuration.pixels
        self._address_bits = address_bits
        self._state = data.StructLayout(
            {
                "y": signed(16),
                "x": data.ArrayLayout(signed(16), self._windows),
                "base": data.ArrayLayout(address_bits, self._windows),
            }
        )
        super().__init__(
            {
                "instruction": In(MATRIX_INSTRUCTION),
                "start": In(1),
                "pairs": In(1),
                "advance": In(1),
                **{name: Out(field.shape) for name, field in self._state},
                # amaranth-stubs knows no initial values of members
                "last": Out(1, init=1),  # pyright: ignore[reportCallIssue]
                "next_last": Out(1),
                "index": Out(12),
                "complete": Out(1),
                "half": Out(1),
                "block": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # no reset, but for ``last``: all of it begins with ``start``
        state = Signal(self._state, reset_less=True)
        m.d.comb += [getattr(self, name).eq(state[name]) for name in self._state.members]
        by_twos: Value = Const(0, 1)
        if self._takes_depthwise:
            # a register: sums hang on it in the cycle of ``start``
            by_twos = delay(m, made_by_twos(self.instruction), 1, "by_twos", reset_less=True)
            m.submodules.turns = turns = DepthwiseTurns()
            m.d.comb += [
                turns.instruction.eq(self.instruction),
                turns.start.eq(self.start),
                turns.advance.eq(self.advance),
                self.index.eq(turns.index),
                self.complete.eq(turns.complete),
                self.half.eq(~turns.down),
                self.block.eq(turns.block),
            ]
            row_ends = self._count(m, turns, by_twos)
            self._walk(m, state, _Cycle(row_ends, turns.down, turns.next_down), by_twos)
        else:
            index = Signal(12, reset_less=True)
            with m.If(self.start):
                m.d.sync += index.eq(0)
            with m.Else():
                m.d.sync += index.eq(index + 1)
            m.d.comb += [self.index.eq(index), self.complete.eq(1)]
            row_ends = self._count(m, None, by_twos)
            self._walk(m, state, _Cycle(row_ends, Const(0, 1), Const(0, 1)), by_twos)
        return m

    def _count(self, m: Module, turns: DepthwiseTurns | None, by_twos: Value) -> Signal:
        """Groups of a row, and rows, or blocks of two; whether a row ends with this cycle."""
        source = self.instruction
        groups_left, rows_left = Signal(12, reset_less=True), Signal(12, reset_less=True)
        # registers, because addresses hang on the one, the swap of all lanes on the other
        row_ends, last, next_last = Signal(reset_less=True), self.last, self.next_last
        last_group, last_row = Signal(reset_less=True), Signal(reset_less=True)
        single_group = Signal(reset_less=True)
        more_groups = Signal(12, reset_less=True)
        groups, one_group = source.groups, source.groups == 1
        if self._takes_pairs:
            # as a pair's groups are even, the same comparison with one bit less
            one_group = Mux(self.pairs, source.groups[1:] == 1, one_group)
            groups = Mux(self.pairs, source.groups >> 1, source.groups)
        one_row = (source.rows == 1) | (by_twos & (source.rows == 2))
        m.d.comb += next_last.eq(last)
        m.d.sync += last.eq(next_last)
        with m.If(self.start):
            m.d.comb += next_last.eq(one_group & one_row)
            m.d.sync += [
                groups_left.eq(groups - 1),
                more_groups.eq(groups - 1),
                rows_left.eq((source.rows - 1) >> by_twos),
                last_group.eq(one_group),
                single_group.eq(one_group),
                last_row.eq(one_row),
                row_ends.eq(one_group),
            ]
        with m.Elif(Const(1, 1) if turns is None else turns.ends):
            m.d.comb += next_last.eq(last | ((groups_left == 1) & last_row))
            m.d.sync += [
                groups_left.eq(groups_left - 1),
                last_group.eq(groups_left == 1),
                row_ends.eq(groups_left == 1),
            ]
            with m.If(last_group):
                m.d.comb += next_last.eq(last | (single_group & (rows_left == 1)))
                m.d.sync += [
                    groups_left.eq(more_groups),
                    rows_left.eq(rows_left - 1),
                    last_group.eq(single_group),
                    row_ends.eq(single_group),
                    last_row.eq(rows_left == 1),
                ]
        if turns is not None:
            m.d.comb += [turns.row_ends.eq(row_ends), turns.last_row.eq(last_row)]
            # where groups take several cycles, it ends with the cycle behind ``ending``
            with m.If(self.start):
                with m.If(self.instruction.depthwise):
                    m.d.comb += next_last.eq(0)
                    m.d.sync += row_ends.eq(0)
            with m.Elif(turns.several):
                ending = turns.ending & last_group
                m.d.comb += next_last.eq(last | (ending & last_row))
                m.d.sync += row_ends.eq(ending)
        return row_ends

    def _walk(self, m: Module, state: Any, cycle: _Cycle, by_twos: Value) -> None:
        """Coordinates and addresses of the windows; the next row's are known before it begins."""
        source = self.instruction
        row_ahead = Signal(self._address_bits, reset_less=True)
        row_y, next_row_y = (
            Signal(signed(16), name=name, reset_less=True) for name in ("row_y", "next_row_y")
        )
        stride_y = Signal(9, reset_less=True)
        lower_y, step_y = (Signal(9, name=name, reset_less=True) for name in ("lower_y", "step_y"))
        given_stride, given_lower = source.stride_y << by_twos, source.dilation_y << 1
        with m.If(self.start):
            m.d.sync += [
                row_ahead.eq(source.row_step << by_twos),
                stride_y.eq(given_stride),
                lower_y.eq(given_lower),
                step_y.eq(Mux(cycle.next_down, given_lower, 0)),
                row_y.eq(source.origin_y),
                next_row_y.eq(source.origin_y + given_stride),
                state.y.eq(source.origin_y),
            ]
        with m.Else():
            m.d.sync += step_y.eq(Mux(cycle.next_down, lower_y, 0))
            with m.If(cycle.row_ends):
                m.d.sync += [
                    state.y.eq(next_row_y),
                    row_y.eq(next_row_y),
                    next_row_y.eq(next_row_y + stride_y),
                ]
            with m.Else():
                m.d.sync += state.y.eq(row_y + step_y)
        self._walk_columns(m, state, cycle, row_ahead)

    def _from_origin(self, step: Value, window: int, apart: Value | int) -> Value:
        """Returns a window's distance from the origin at the start of every row but the first.

        Rows that are joined begin a column later than the first. Chosen before it is added: two
        sums behind each other would be the longest way that begins with ``start``.
        """
        ahead = Mux(apart, window * step, 0)
        if not self._takes_depthwise:
            return ahead
        return Mux(self.instruction.joined, Mux(apart, (window + 1) * step, step), ahead)

    def _walk_columns(self, m: Module, state: Any, cycle: _Cycle, row_ahead: Signal) -> None:
        """Column and address of each window, and those of the row's first.

        How far the next address is on is chosen a cycle before it is added.
        """
        source = self.instruction
        row_base = Signal(data.ArrayLayout(self._address_bits, self._windows), reset_less=True)
        row_x = Signal(data.ArrayLayout(signed(16), self._windows), reset_less=True)
        # from a group to the next one
        ahead, lower, onwards = (
            Signal(self._address_bits, name=name, reset_less=True)
            for name in ("ahead", "lower", "onwards")
        )
        ahead_x = Signal(9 + self._pixels.bit_length(), reset_less=True)

        def several(step: Value) -> Value:
            return Mux(self.pairs, step << 1, step) if self._takes_pairs else self._pixels * step

        if self._takes_depthwise:
            step = Mux(source.depthwise, source.tap_step_y << 1, 0)
        else:
            step = Const(0)
        with m.If(self.start):
            m.d.sync += [
                lower.eq(step),
                ahead.eq(several(source.column_step) - step),
                onwards.eq(Mux(cycle.next_down, step, several(source.column_step))),
                ahead_x.eq(several(source.stride_x)),
            ]
        with m.Else():
            m.d.sync += onwards.eq(Mux(cycle.next_down, lower, ahead))
        for p in range(self._windows):
            next_row = Signal(self._address_bits, name=f"next_row_{p}")
            m.d.comb += next_row.eq(row_base[p] + row_ahead)
            with m.If(self.start):
                apart = p & self.pairs if self._takes_pairs else p
                m.d.sync += [
                    state.base[p].eq(source.origin + Mux(apart, p * source.column_step, 0)),
                    state.x[p].eq(source.origin_x + Mux(apart, p * source.stride_x, 0)),
                    row_base[p].eq(source.origin + self._from_origin(source.column_step, p, apart)),
                    row_x[p].eq(source.origin_x + self._from_origin(source.stride_x, p, apart)),
                ]
            with m.Else():
                beside = state.base[p] + onwards
                x_beside = state.x[p] + Mux(cycle.down, 0, ahead_x)
                m.d.sync += [
                    state.base[p].eq(Mux(cycle.row_ends, next_row, beside)),
                    state.x[p].eq(Mux(cycle.row_ends, row_x[p], x_beside)),
                ]
                with m.If(cycle.row_ends):
                    m.d.sync += row_base[p].eq(next_row)

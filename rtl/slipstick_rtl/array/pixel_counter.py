"""The pixel counter: walks the output pixels of a tile, P at a time, or in pairs."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION


class PixelCounter(wiring.Component):
    """Coordinates and window addresses of the P pixels of a group, one group a cycle.

    Where the configuration ``takes_pairs`` there are two windows: a pair's, or twice the same.

    Parameters
    ----------
    configuration : Configuration
    address_bits : int
        Addresses are kept modulo 2^address_bits.

    Members
    -------
    instruction : In
        A CONVOLVE, sampled with ``start``.
    start : In
        Go to the first group in the next cycle.
    pairs : In
        With ``start``: a group is two pixels in this tile.
    advance : In
        Go to the next group in the next cycle.
    y : Out
        Input row of the group's windows.
    x, base : Out
        [windows] input column and byte address of each window's first tap.
    index : Out
        Groups before this one: its place in an accumulator bank.
    last : Out
        This is the tile's last group.
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

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        self._takes_pairs = configuration.takes_pairs
        self._windows, self._pixels = configuration.windows, configuration.pixels
        self._address_bits = address_bits
        self._state = data.StructLayout(
            {
                "y": signed(16),
                "x": data.ArrayLayout(signed(16), self._windows),
                "base": data.ArrayLayout(address_bits, self._windows),
                "index": 12,
                "last": 1,
            }
        )
        super().__init__(
            {
                "instruction": In(MATRIX_INSTRUCTION),
                "start": In(1),
                "pairs": In(1),
                "advance": In(1),
                **{name: Out(field.shape) for name, field in self._state},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # no reset: all of it begins with ``start``
        state = Signal(self._state, reset_less=True)
        fields = Signal(MATRIX_INSTRUCTION, reset_less=True)
        groups_left, rows_left = Signal(12, reset_less=True), Signal(12, reset_less=True)
        m.d.comb += [getattr(self, name).eq(state[name]) for name in self._state.members]
        # ``last`` is a register, because the swap of all lanes and weights hangs on it
        row_ends, last_row = Signal(reset_less=True), Signal(reset_less=True)
        single_group, pairs = Signal(reset_less=True), Signal(reset_less=True)
        more_groups = Signal(12, reset_less=True)
        source = self.instruction
        groups, one_group = source.groups, source.groups == 1
        if self._takes_pairs:
            # as a pair's groups are even, the same comparison with one bit less
            one_group = Mux(self.pairs, source.groups[1:] == 1, one_group)
            groups = Mux(self.pairs, source.groups >> 1, source.groups)
        with m.If(self.start):
            m.d.sync += [
                fields.eq(source),
                pairs.eq(self.pairs),
                state.y.eq(source.origin_y),
                state.index.eq(0),
                groups_left.eq(groups - 1),
                more_groups.eq(groups - 1),
                rows_left.eq(source.rows - 1),
                row_ends.eq(one_group),
                single_group.eq(one_group),
                last_row.eq(source.rows == 1),
                state.last.eq(one_group & (source.rows == 1)),
            ]
        with m.Elif(self.advance):
            m.d.sync += [
                state.index.eq(state.index + 1),
                groups_left.eq(groups_left - 1),
                row_ends.eq(groups_left == 1),
                state.last.eq((groups_left == 1) & last_row),
            ]
            with m.If(row_ends):
                m.d.sync += [
                    state.y.eq(state.y + fields.stride_y),
                    groups_left.eq(more_groups),
                    rows_left.eq(rows_left - 1),
                    row_ends.eq(single_group),
                    last_row.eq(rows_left == 1),
                    state.last.eq(single_group & (rows_left == 1)),
                ]
        self._walk(m, state, fields, row_ends, pairs)
        return m

    def _walk(self, m: Module, state: Any, fields: Any, row_ends: Signal, pairs: Signal) -> None:
        """Column and address of each window, and those of the row's first."""
        source = self.instruction
        row_base = Signal(data.ArrayLayout(self._address_bits, self._windows), reset_less=True)
        row_x = Signal(data.ArrayLayout(signed(16), self._windows), reset_less=True)

        def ahead(step: Value) -> Value:
            """From a group to the next one."""
            return Mux(pairs, step << 1, step) if self._takes_pairs else self._pixels * step

        for p in range(self._windows):
            next_row = Signal(self._address_bits, name=f"next_row_{p}")
            m.d.comb += next_row.eq(row_base[p] + fields.row_step)
            with m.If(self.start):
                apart = p & self.pairs if self._takes_pairs else p
                first_base = source.origin + Mux(apart, p * source.column_step, 0)
                first_x = source.origin_x + Mux(apart, p * source.stride_x, 0)
                m.d.sync += [state.base[p].eq(first_base), row_base[p].eq(first_base)]
                m.d.sync += [state.x[p].eq(first_x), row_x[p].eq(first_x)]
            with m.Elif(self.advance):
                beside = state.base[p] + ahead(fields.column_step)
                m.d.sync += [
                    state.base[p].eq(Mux(row_ends, next_row, beside)),
                    state.x[p].eq(Mux(row_ends, row_x[p], state.x[p] + ahead(fields.stride_x))),
                ]
                with m.If(row_ends):
                    m.d.sync += row_base[p].eq(next_row)

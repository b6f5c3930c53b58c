"""The pixel counter: walks the output pixels of a tile, P at a time."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION


class PixelCounter(wiring.Component):
    """Coordinates and window addresses of the P pixels of a group, one group a cycle.

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
    advance : In
        Go to the next group in the next cycle.
    y : Out
        Input row of the group's windows.
    x, base : Out
        [P] input column and byte address of each window's first tap.
    index : Out
        Groups before this one: its place in an accumulator bank.
    last : Out
        This is the tile's last group.
    """

    instruction: data.View
    start: Signal
    advance: Signal
    y: Signal
    x: data.View
    base: data.View
    index: Signal
    last: Signal

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        self._pixels = configuration.pixels
        self._address_bits = address_bits
        super().__init__(
            {
                "instruction": In(MATRIX_INSTRUCTION),
                "start": In(1),
                "advance": In(1),
                "y": Out(signed(16)),
                "x": Out(data.ArrayLayout(signed(16), self._pixels)),
                "base": Out(data.ArrayLayout(address_bits, self._pixels)),
                "index": Out(12),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fields = Signal(MATRIX_INSTRUCTION)
        groups_left, rows_left = Signal(12), Signal(12)
        # ``last`` is a register, because the swap of all lanes and weights hangs on it
        row_ends, last_row, single_group = Signal(), Signal(), Signal()
        source = self.instruction
        with m.If(self.start):
            m.d.sync += [
                fields.eq(source),
                self.y.eq(source.origin_y),
                self.index.eq(0),
                groups_left.eq(source.groups - 1),
                rows_left.eq(source.rows - 1),
                row_ends.eq(source.groups == 1),
                single_group.eq(source.groups == 1),
                last_row.eq(source.rows == 1),
                self.last.eq((source.groups == 1) & (source.rows == 1)),
            ]
        with m.Elif(self.advance):
            m.d.sync += [
                self.index.eq(self.index + 1),
                groups_left.eq(groups_left - 1),
                row_ends.eq(groups_left == 1),
                self.last.eq((groups_left == 1) & last_row),
            ]
            with m.If(row_ends):
                m.d.sync += [
                    self.y.eq(self.y + fields.stride_y),
                    groups_left.eq(fields.groups - 1),
                    rows_left.eq(rows_left - 1),
                    row_ends.eq(single_group),
                    last_row.eq(rows_left == 1),
                    self.last.eq(single_group & (rows_left == 1)),
                ]
        self._walk(m, fields, row_ends)
        return m

    def _walk(self, m: Module, fields: Any, row_ends: Signal) -> None:
        """Column and address of each of P windows, and those of the row's first."""
        source = self.instruction
        row_base = Signal(data.ArrayLayout(self._address_bits, self._pixels))
        row_x = Signal(data.ArrayLayout(signed(16), self._pixels))
        for p in range(self._pixels):
            next_row = Signal(self._address_bits, name=f"next_row_{p}")
            m.d.comb += next_row.eq(row_base[p] + fields.row_step)
            with m.If(self.start):
                first_base = source.origin + p * source.column_step
                first_x = source.origin_x + p * source.stride_x
                m.d.sync += [self.base[p].eq(first_base), row_base[p].eq(first_base)]
                m.d.sync += [self.x[p].eq(first_x), row_x[p].eq(first_x)]
            with m.Elif(self.advance):
                beside = self.base[p] + self._pixels * fields.column_step
                m.d.sync += [
                    self.base[p].eq(Mux(row_ends, next_row, beside)),
                    self.x[p].eq(
                        Mux(row_ends, row_x[p], self.x[p] + self._pixels * fields.stride_x)
                    ),
                ]
                with m.If(row_ends):
                    m.d.sync += row_base[p].eq(next_row)

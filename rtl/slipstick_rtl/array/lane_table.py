"""The lane table: which input byte each row of the array takes, for a reduction tile."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION
from ..primitives.delay import delay

SWAP_CYCLES = 2
"""Cycles from ``swap`` until the lanes are at work: one more would lose a lane."""


def lane_layout(address_bits: int) -> data.StructLayout:
    """A lane: its tap's distance in rows and columns, its byte's distance in memory."""
    return data.StructLayout({"y": 12, "x": 12, "offset": address_bits})


class LaneTable(wiring.Component):
    """Walks the flattened reduction (ky, kx, c) one lane a cycle, and holds a tile of it at work.

    Parameters
    ----------
    configuration : Configuration
    address_bits : int
        Offsets are kept modulo 2^address_bits.

    Members
    -------
    instruction : In
        A CONVOLVE, stable from ``start`` until its last lane.
    start : In
        The next lane is the instruction's first.
    advance : In
        Takes the next lane into the tile being prepared; R of them make a tile.
    last : In
        The lane taken is a tile's last.
    swap : In
        Brings the prepared tile to work, ``SWAP_CYCLES`` cycles later.
    lanes : Out
        [R] lanes at work.
    """

    instruction: data.View
    start: Signal
    advance: Signal
    last: Signal
    swap: Signal
    lanes: data.View

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        self._lane = lane_layout(address_bits)
        self._lanes = data.ArrayLayout(self._lane, configuration.rows)
        super().__init__(
            {
                "instruction": In(MATRIX_INSTRUCTION),
                "start": In(1),
                "advance": In(1),
                "last": In(1),
                "swap": In(1),
                "lanes": Out(self._lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fields = self.instruction
        lane, tap, row = Signal(self._lane), Signal(self._lane), Signal(self._lane)
        # counted from one, so that the ends are comparisons without an addition
        channel, kernel_x = Signal(16), Signal(5)
        idle = Signal()
        channels_end = Signal()
        kernel_end = Signal()
        m.d.comb += [
            channels_end.eq(channel == fields.channels),
            kernel_end.eq(kernel_x == fields.kernel_x),
        ]
        with m.If(self.start):
            m.d.sync += [lane.eq(0), tap.eq(0), row.eq(0), channel.eq(1), kernel_x.eq(1)]
            m.d.sync += idle.eq(0)
        with m.Elif(self.advance):
            aligned = fields.align_tap | (fields.align_row & kernel_end)
            with m.If(self.last):
                m.d.sync += idle.eq(0)
            with m.Elif(channels_end & ~idle):
                m.d.sync += idle.eq(aligned)
            with m.If(~idle):
                self._step(m, (lane, tap, row), channels_end, kernel_end)
                m.d.sync += channel.eq(channel + 1)
                with m.If(channels_end):
                    m.d.sync += [channel.eq(1), kernel_x.eq(kernel_x + 1)]
                    with m.If(kernel_end):
                        m.d.sync += kernel_x.eq(1)
        prepared = Signal(self._lanes, reset_less=True)
        working = Signal(self._lanes, reset_less=True)
        with m.If(self.advance):
            # after R lanes the first has reached place 0
            rows = self._lanes.length
            m.d.sync += [prepared[i].eq(prepared[i + 1]) for i in range(rows - 1)]
            m.d.sync += prepared[rows - 1].eq(lane)
        # one register for all the lanes to hang on; meanwhile at most one new lane is taken
        with m.If(delay(m, self.swap, SWAP_CYCLES - 1, "swap")):
            m.d.sync += working.eq(prepared)
        m.d.comb += self.lanes.eq(working)
        return m

    def _step(self, m: Module, nest: tuple, channels_end: Signal, kernel_end: Signal) -> None:
        """The next lane, the tap that it belongs to, and the first tap of that kernel row."""
        lane, tap, row = nest
        fields = self.instruction
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
            m.d.sync += lane.offset.eq(lane.offset + 1)

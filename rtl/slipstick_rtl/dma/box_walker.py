"""The addresses of a box's runs, row after row."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

COUNT_BITS = 16
"""Bits of the numbers of runs and rows, less one."""


class BoxWalker(wiring.Component):
    """Gives the address of each run, one a cycle.

    Parameters
    ----------
    width : int
        Of addresses; they go round.

    Members
    -------
    start : In
        Begins with ``origin``; only while not ``busy``.
    origin, run_pitch, row_pitch : In
    runs, rows : In
        Less one. These inputs hold from ``start`` until the walker is no longer ``busy``.
    o : Out(stream of addresses)
    busy : Out
    """

    start: Signal
    origin: Signal
    run_pitch: Signal
    row_pitch: Signal
    runs: Signal
    rows: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, *, width: int) -> None:
        super().__init__(
            {
                "start": In(1),
                "origin": In(width),
                "run_pitch": In(COUNT_BITS),
                "row_pitch": In(24),
                "runs": In(COUNT_BITS),
                "rows": In(COUNT_BITS),
                "o": Out(stream.Signature(width)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        address, row = Signal.like(self.origin), Signal.like(self.origin)
        # behind the run and the row at hand; whether there are none is known a cycle earlier
        runs_left, rows_left = Signal(COUNT_BITS), Signal(COUNT_BITS)
        last_run, last_row = Signal(), Signal()
        single_run = self.runs == 0
        # one adder: the next run begins a pitch behind this one, or behind the row
        following = Mux(last_run, row, address) + Mux(last_run, self.row_pitch, self.run_pitch)
        m.d.comb += [self.o.valid.eq(self.busy), self.o.payload.eq(address)]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                address.eq(self.origin),
                row.eq(self.origin),
                runs_left.eq(self.runs),
                last_run.eq(single_run),
                rows_left.eq(self.rows),
                last_row.eq(self.rows == 0),
            ]
        with m.Elif(self.busy & self.o.ready):
            m.d.sync += [
                self.busy.eq(~(last_run & last_row)),
                address.eq(following),
                runs_left.eq(Mux(last_run, self.runs, runs_left - 1)),
                last_run.eq(Mux(last_run, single_run, runs_left == 1)),
            ]
            with m.If(last_run):
                m.d.sync += [
                    row.eq(following),
                    rows_left.eq(rows_left - 1),
                    last_row.eq(rows_left == 1),
                ]
        return m

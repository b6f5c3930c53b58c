"""The addresses of a box's runs, row after row."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

COUNT_BITS = 16
"""Of runs and rows, less one."""


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
        run_number, row_number = Signal(COUNT_BITS), Signal(COUNT_BITS)
        row_ends, final = run_number == self.runs, Signal()
        # one adder: the next run begins a pitch behind this one, or behind the row
        following = Mux(row_ends, row, address) + Mux(row_ends, self.row_pitch, self.run_pitch)
        m.d.comb += [
            final.eq(row_ends & (row_number == self.rows)),
            self.o.valid.eq(self.busy),
            self.o.payload.eq(address),
        ]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                address.eq(self.origin),
                row.eq(self.origin),
                run_number.eq(0),
                row_number.eq(0),
            ]
        with m.Elif(self.busy & self.o.ready):
            m.d.sync += [
                self.busy.eq(~final),
                address.eq(following),
                run_number.eq(Mux(row_ends, 0, run_number + 1)),
            ]
            with m.If(row_ends):
                m.d.sync += [row.eq(following), row_number.eq(row_number + 1)]
        return m

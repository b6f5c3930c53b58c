"""The post engine's loop nest: rows, columns, slices and taps, one step a cycle."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa import POST_FIELDS

STEP = data.StructLayout(
    {
        "valid": 1,
        "first": 1,  # first tap of a result
        "odd": 1,  # tap_x is odd
        "tap_row_end": 1,  # last tap_x
        "last": 1,  # and last tap_y: the result is complete
        "pixel_end": 1,  # and last slice
        "row_end": 1,  # and last column
        "end": 1,  # and last row
    }
)
"""One step of the nest. Each ``end`` includes those above it."""

_LOOPS = {
    "taps_x": "tap_row_end",
    "taps_y": "last",
    "slices": "pixel_end",
    "columns": "row_end",
    "rows": "end",
}
"""Instruction fields that hold the counts, innermost first, and what the end of each is called."""

COUNTS = data.StructLayout({name: POST_FIELDS[name].width for name in _LOOPS})


class LoopNest(wiring.Component):
    """Five nested counters, each counting its remaining turns down to none.

    Members
    -------
    load : In(1)
        Starts the nest with ``counts`` in the next cycle; only while it does not run.
    counts : In(COUNTS)
        Turns of each loop, at least 1; constant while the nest runs.
    stall : In(1)
        No step in this cycle.
    step : Out(STEP)
    """

    load: Signal
    counts: data.View
    stall: Signal
    step: data.View

    def __init__(self) -> None:
        super().__init__({"load": In(1), "counts": In(COUNTS), "stall": In(1), "step": Out(STEP)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        running = Signal()
        m.d.comb += step.valid.eq(running & ~self.stall)
        inner_end = None
        for name, end in _LOOPS.items():
            count = self.counts[name]
            remaining = Signal(count.shape(), name=f"{name}_remaining")
            final = Signal(name=f"{name}_final")
            advance = step.valid if inner_end is None else step.valid & inner_end
            with m.If(self.load | (advance & final)):
                m.d.sync += [remaining.eq(count - 1), final.eq(count == 1)]
            with m.Elif(advance):
                m.d.sync += [remaining.eq(remaining - 1), final.eq(remaining == 1)]
            m.d.comb += step[end].eq(final if inner_end is None else final & inner_end)
            inner_end = step[end]

        with m.If(self.load):
            m.d.sync += [running.eq(1), step.first.eq(1), step.odd.eq(0)]
        with m.Elif(step.valid):
            m.d.sync += [
                running.eq(~step.end),
                step.first.eq(step.last),
                step.odd.eq(~step.odd & ~step.tap_row_end),
            ]
        return m

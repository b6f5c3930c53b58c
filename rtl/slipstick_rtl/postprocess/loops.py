"""The post engine's loop nest within a slice: rows, columns and taps, one step a cycle."""

from amaranth.hdl import Module, Mux, Signal
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
        "row_end": 1,  # and last column
        "end": 1,  # and last row
    }
)
"""One step of the nest. Each ``end`` includes those above it."""

_LOOPS = {
    "taps_x": "tap_row_end",
    "taps_y": "last",
    "columns": "row_end",
    "rows": "end",
}
"""Instruction fields that hold the counts, innermost first, and what the end of each is called."""

COUNTS = data.StructLayout({name: POST_FIELDS[name].width for name in _LOOPS})


class LoopNest(wiring.Component):
    """Four nested counters, each counting its turns down to the last.

    Members
    -------
    load : In(1)
        Starts the nest with ``counts`` in the next cycle; only if ``free``.
    counts : In(COUNTS)
        Turns of each loop, at least 1; with ``load``.
    stall : In(1)
        No step in this cycle.
    step : Out(STEP)
    free : Out(1)
        There is no further step after this cycle.
    """

    load: Signal
    counts: data.View
    stall: Signal
    step: data.View
    free: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "load": In(1),
                "counts": In(COUNTS),
                "stall": In(1),
                "step": Out(STEP),
                "free": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        running = Signal()
        m.d.comb += [
            step.valid.eq(running & ~self.stall),
            self.free.eq(~running | (step.valid & step.end)),
        ]
        inner_end = None
        for name, end in _LOOPS.items():
            count = self.counts[name]
            turns = Signal(count.shape(), name=f"{name}_turns", reset_less=True)
            remaining = Signal(count.shape(), name=f"{name}_remaining", reset_less=True)
            single = Signal(name=f"{name}_single", reset_less=True)
            final = Signal(name=f"{name}_final", reset_less=True)
            advance = step.valid if inner_end is None else step.valid & inner_end
            only = Signal(name=f"{name}_only")
            m.d.comb += only.eq(count == 1)
            with m.If(self.load):
                m.d.sync += [turns.eq(count), single.eq(only)]
            with m.If(self.load | advance):
                restarted = Mux(self.load, count, turns)
                m.d.sync += [
                    remaining.eq(Mux(self.load | final, restarted, remaining - 1)),
                    final.eq(Mux(self.load, only, Mux(final, single, remaining == 2))),
                ]
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

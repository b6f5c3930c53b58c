"""The post engine's loop nest within a slice: rows, columns and taps, one step a cycle."""

from amaranth.hdl import Module, Mux, Signal, Value
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
        Turns of each loop, at least 1; with ``load``, and in the cycle before.
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
        inner_end, next_end = Value.cast(1), Value.cast(1)
        for name, end in _LOOPS.items():
            next_end &= self._count(m, name, step.valid & inner_end)
            # each from a register, as everything hangs on when a loop is left
            m.d.sync += step[end].eq(next_end)
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

    def _count(self, m: Module, name: str, advance: Value) -> Value:
        """A loop's counter; whether its turn in the next cycle is the last one."""
        count = self.counts[name]
        turns, remaining = (
            Signal(count.shape(), name=f"{name}_{what}", reset_less=True)
            for what in ("turns", "remaining")
        )
        final, next_final = Signal(name=f"{name}_final"), Signal(name=f"{name}_next_final")
        # of one turn, of two: as the counts have it, as the slice under way has it
        given = [Signal(name=f"{name}_given_{n}", reset_less=True) for n in (1, 2)]
        known = [Signal(name=f"{name}_known_{n}", reset_less=True) for n in (1, 2)]
        next_but_one = Signal(name=f"{name}_next_but_one", reset_less=True)
        m.d.sync += [given[0].eq(count == 1), given[1].eq(count == 2), final.eq(next_final)]
        m.d.comb += next_final.eq(final)
        with m.If(self.load):
            m.d.comb += next_final.eq(given[0])
            m.d.sync += [
                turns.eq(count),
                remaining.eq(count),
                next_but_one.eq(given[1]),
                *(flag.eq(value) for flag, value in zip(known, given, strict=True)),
            ]
        with m.Elif(advance):
            m.d.comb += next_final.eq(Mux(final, known[0], next_but_one))
            m.d.sync += [
                remaining.eq(Mux(final, turns, remaining - 1)),
                next_but_one.eq(Mux(final, known[1], remaining == 3)),
            ]
        return next_final

"""The cycles of a run."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa import STREAMS

COUNTER_BITS = 24
"""0.7 s at 24 MHz, more than a program that fits such a memory can take; they wrap."""


class RunCounters(wiring.Component):
    """Counts from ``run`` until both streams have ended.

    Members
    -------
    run : In
    active : In
        A stream has not ended.
    streaming : In
        The array gets a vector in this cycle.
    post_start, post_done : In
        Of an instruction of the post stream.
    running : Out
    cycles, stream_cycles : Out
        All; those with a vector, and those within an instruction of the post stream.
    """

    run: Signal
    active: Signal
    streaming: Signal
    post_start: Signal
    post_done: Signal
    running: Signal
    cycles: Signal
    stream_cycles: data.View

    def __init__(self) -> None:
        inputs = ("run", "active", "streaming", "post_start", "post_done")
        super().__init__(
            {
                **dict.fromkeys(inputs, In(1)),
                "running": Out(1),
                "cycles": Out(COUNTER_BITS),
                "stream_cycles": Out(data.ArrayLayout(COUNTER_BITS, len(STREAMS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        posting = Signal()
        m.d.sync += [
            self.running.eq(self.run | self.active),
            posting.eq(self.post_start | posting & ~self.post_done & self.active),
        ]
        counted = (
            (self.cycles, self.running),
            (self.stream_cycles[0], self.streaming),
            (self.stream_cycles[1], posting),
        )
        for counter, condition in counted:
            with m.If(self.run):
                m.d.sync += counter.eq(0)
            with m.Elif(condition):
                m.d.sync += counter.eq(counter + 1)
        return m

"""A core that sends back what it receives, for tests of what is around it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.config import Configuration


class Echo(wiring.Component):
    """Stands in for the core, whose elaboration takes seconds."""

    i: stream.Interface
    o: stream.Interface
    running: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "running": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        m.d.sync += self.running.eq(self.i.valid)
        return m

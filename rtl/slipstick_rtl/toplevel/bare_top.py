"""The core alone on a chip: queues between it and the pins, and no board around it."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accelerator import Accelerator
from ..config import Configuration
from ..primitives.stream_queue import StreamQueue

QUEUE_DEPTH = 4


class BareTop(wiring.Component):
    """The core with its two byte streams on pins, so that place and route can measure it.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    clk : In
    i, o : In(stream), Out(stream)
        Bytes of the framed link; a queue on each side keeps the pins out of the core's paths.
    running : Out
        A program runs; one cycle late.
    """

    clk: Signal
    i: stream.Interface
    o: stream.Interface
    running: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self.accelerator = Accelerator(configuration=configuration)
        super().__init__(
            {
                "clk": In(1),
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "running": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # the chip's registers begin with their initial values
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.d.comb += ClockSignal().eq(self.clk)
        m.submodules.core = core = self.accelerator
        m.submodules.received = received = StreamQueue(shape=8, depth=QUEUE_DEPTH)
        m.submodules.sent = sent = StreamQueue(shape=8, depth=QUEUE_DEPTH)
        connect(m, flipped(self.i), received.i)
        connect(m, received.o, core.i)
        connect(m, core.o, sent.i)
        connect(m, sent.o, flipped(self.o))
        m.d.sync += self.running.eq(core.running)
        return m

"""Keeps a received request until the one before it has been executed."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import Request
from .protocol import Command, Status


class RequestQueue(wiring.Component):
    """A place for one request, so that a frame can be received behind a short one that waits.

    Behind an OPEN nothing comes in before that has been executed: the verdicts of later frames are
    those of its session. Latency: 1 cycle.

    Members
    -------
    i : In(stream of Request)
    o : Out(stream of Request)
        Taken when the request before it has been executed and answered; ``ready`` without an offer
        means that none is being executed.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        request = stream.Signature(Request)
        super().__init__({"i": In(request), "o": Out(request)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        opening = Signal()
        free = ~self.o.valid | self.o.ready
        opens = self.i.p.header.command.code == Command.OPEN
        m.d.comb += self.i.ready.eq(free & ~opening)
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(self.i.valid & ~opening),
                self.o.payload.eq(self.i.payload),
            ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += opening.eq(opens & (self.i.p.verdict == Status.OK))
        with m.Elif(~self.o.valid & self.o.ready):
            m.d.sync += opening.eq(0)
        return m

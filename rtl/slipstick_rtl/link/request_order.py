"""Keeps the order of the requests: which one is next, and which PUT may go on."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .layouts import FrameHeader
from .protocol import UNORDERED, Command


class RequestOrder(wiring.Component):
    """Knows the number of the next request, and whether a PUT may go on; see ``link.protocol``.

    Latency: ``ordered``, ``repeated`` and ``early`` follow the header by a cycle.

    Members
    -------
    header : In(FrameHeader)
        Of the request at hand. It holds until a cycle after ``executed``.
    in_turn : In
        Strobe: it is judged, and neither unknown, nor out of order, nor has it waited in vain.
    good : In
        With ``in_turn``: it is OK.
    executed : In
        Strobe: its number counts.
    ordered, repeated, early : Out
        Its command has a place in the order; it is the last one, sent again; it is refused before
        it waits for anything.
    unknown : Out
        There is no such command.
    next_sequence : Out(8)
    may_continue : Out
        A PUT may go on where the last one ended.
    """

    header: data.View
    in_turn: Signal
    good: Signal
    executed: Signal
    ordered: Signal
    repeated: Signal
    early: Signal
    unknown: Signal
    next_sequence: Signal
    may_continue: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "header": In(FrameHeader),
                **dict.fromkeys(("in_turn", "good", "executed"), In(1)),
                **dict.fromkeys(("ordered", "repeated", "early", "unknown"), Out(1)),
                "next_sequence": Out(8),
                "may_continue": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code = self.header.command.code
        ahead = Signal(8)
        ordered, opens, put, breaks = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            ahead.eq(self.next_sequence - self.header.sequence),
            ordered.eq(~code.matches(*UNORDERED)),
        ]
        known = code.matches(*Command)
        m.d.sync += [
            self.unknown.eq(~known),
            self.ordered.eq(ordered),
            self.repeated.eq(ordered & (ahead == 1)),
            self.early.eq(~known | ordered & (ahead > 1)),
            opens.eq(code == Command.OPEN),
            put.eq(code == Command.PUT),
            breaks.eq(ordered & (code != Command.HOLD) | (code == Command.OPEN)),
        ]
        with m.If(self.executed & (self.ordered | opens)):
            m.d.sync += self.next_sequence.eq(self.header.sequence + 1)
        with m.If(self.executed & put & ~self.repeated):
            m.d.sync += self.may_continue.eq(1)
        with m.Elif(self.in_turn & Mux(put, self.good & ~self.repeated, breaks)):
            m.d.sync += self.may_continue.eq(0)
        return m

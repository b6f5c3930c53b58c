"""The steps of a compact link: a request comes, is judged, executed and answered, then the next."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..command_processor import SETTLE_CYCLES
from ..layouts import FrameHeader
from ..protocol import CRC_BYTES, HEADER_BYTES, REQUEST_START

_INPUTS = ("taken", "sent", "forget", "busy", "sound", "too_long", "judged", "good", "write")
_INPUTS += ("settle", "written")
_OUTPUTS = ("hunting", "in_payload", "inside", "judge", "refuse", "execute", "writing")
_OUTPUTS += ("beginning", "in_header", "answering", "sealing")


class CompactSteps(wiring.Component):
    """Which part of a frame is at hand, and how far it has come.

    Members
    -------
    byte : In(8)
        The request's.
    taken, sent : In
        A byte of the request has come; one of the answer has gone.
    forget : In
        No byte has come for too long.
    busy : In
        The CRC is not settled.
    sound, too_long : In
        The request's CRC is right; its payload is more than a payload may be.
    judged, good : In
        The rules have a verdict, and it is OK.
    write, settle : In
        The request is WRITE; it starts or stops a run.
    written : In
        All of WRITE's data have been handed over.
    answer : In(16)
        Bytes of the answer's payload.
    header : Out
        The request's, as it came.
    index : Out
        Bytes of this part with this one: from 1 up.
    hunting, inside, in_payload : Out
        Between frames; in a request; in its payload.
    judge, refuse, execute : Out
        Strobes: ask the rules; BAD_CRC or BAD_LENGTH; what the rules said is to be done.
    writing : Out
    beginning, in_header, answering, sealing : Out
        The answer's start byte, header, payload or CRC is to be sent.
    """

    byte: Signal
    taken: Signal
    sent: Signal
    forget: Signal
    busy: Signal
    sound: Signal
    too_long: Signal
    judged: Signal
    good: Signal
    write: Signal
    settle: Signal
    written: Signal
    answer: Signal
    header: data.View
    index: Signal
    hunting: Signal
    inside: Signal
    in_payload: Signal
    judge: Signal
    refuse: Signal
    execute: Signal
    writing: Signal
    beginning: Signal
    in_header: Signal
    answering: Signal
    sealing: Signal

    def __init__(self) -> None:
        self._settling = Signal(range(SETTLE_CYCLES))
        super().__init__(
            {
                "byte": In(8),
                **dict.fromkeys(_INPUTS, In(1)),
                "answer": In(16),
                "header": Out(FrameHeader),
                "index": Out(16),
                **dict.fromkeys(_OUTPUTS, Out(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.taken | self.sent):
            m.d.sync += self.index.eq(self.index + 1)
        with m.FSM():
            self._take(m)
            self._execute(m)
            self._send(m)
        return m

    def _begin(self, m: Module, state: str) -> None:
        """Go to the next part of a frame, of which no byte has come or gone."""
        m.d.sync += self.index.eq(1)
        m.next = state

    def _take(self, m: Module) -> None:
        """A request comes, or is forgotten."""
        with m.State("hunt for the start"):
            m.d.comb += self.hunting.eq(1)
            with m.If(self.taken & (self.byte == REQUEST_START)):
                self._begin(m, "take the header")
        with m.State("take the header"):
            m.d.comb += self.inside.eq(1)
            with m.If(self.taken):
                self._take_header(m)
            self._forget(m)
        with m.State("take the payload"):
            m.d.comb += [self.inside.eq(1), self.in_payload.eq(1)]
            with m.If(self.taken & (self.index == self.header.length)):
                self._begin(m, "take the checksum")
            self._forget(m)
        with m.State("take the checksum"):
            m.d.comb += self.inside.eq(1)
            with m.If(self.taken & (self.index[:3] == CRC_BYTES)):
                m.next = "check"
            self._forget(m)

    def _take_header(self, m: Module) -> None:
        header = self.header.as_value()
        m.d.sync += header.eq(Cat(header[8:], self.byte))
        with m.If(self.index[:3] == HEADER_BYTES - 1):
            self._begin(m, "take the payload")
            with m.If(Cat(header[-8:], self.byte) == 0):
                m.next = "take the checksum"

    def _forget(self, m: Module) -> None:
        with m.If(self.forget):
            m.next = "hunt for the start"

    def _execute(self, m: Module) -> None:
        """The request is checked, judged and executed."""
        with m.State("check"), m.If(~self.busy):
            m.d.comb += self.judge.eq(self.sound & ~self.too_long)
            m.d.comb += self.refuse.eq(~self.judge)
            self._begin(m, "send the start")
            with m.If(self.judge):
                m.next = "judge"
        with m.State("judge"), m.If(self.judged):
            m.d.comb += self.execute.eq(1)
            m.d.sync += self._settling.eq(SETTLE_CYCLES - 1)
            self._begin(m, "send the start")
            with m.If(self.good & self.write):
                m.next = "write"
            with m.Elif(self.good & self.settle):
                m.next = "settle"
        with m.State("write"):
            m.d.comb += self.writing.eq(1)
            with m.If(self.written):
                self._begin(m, "send the start")
        with m.State("settle"):
            m.d.sync += self._settling.eq(self._settling - 1)
            with m.If(self._settling == 0):
                m.next = "send the start"

    def _send(self, m: Module) -> None:
        """The answer goes."""
        with m.State("send the start"):
            m.d.comb += self.beginning.eq(1)
            with m.If(self.sent):
                self._begin(m, "send the header")
        with m.State("send the header"):
            m.d.comb += self.in_header.eq(1)
            with m.If(self.sent & (self.index[:3] == HEADER_BYTES - 1)):
                self._begin(m, "send the payload")
                with m.If(self.answer == 0):
                    m.next = "send the checksum"
        with m.State("send the payload"):
            m.d.comb += self.answering.eq(1)
            with m.If(self.sent & (self.index == self.answer)):
                self._begin(m, "send the checksum")
        with m.State("send the checksum"):
            m.d.comb += self.sealing.eq(1)
            with m.If(self.sent & (self.index[:3] == CRC_BYTES)):
                m.next = "hunt for the start"

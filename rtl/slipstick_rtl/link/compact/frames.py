"""The steps of a compact link: a request comes, is judged, executed and answered, then the next."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import FrameHeader
from ..protocol import CRC_BYTES, HEADER_BYTES, REQUEST_START

_INPUTS = ("taken", "sent", "forget", "busy", "sound", "too_long", "hold", "measure", "measured")
_INPUTS += ("good", "transfer", "prepare", "moved", "walking", "quiet")
_OUTPUTS = ("hunting", "in_payload", "inside", "refuse", "judging", "measuring", "execute")
_OUTPUTS += ("moving", "preparing", "beginning", "in_header", "answering", "sealing")


class CompactSteps(wiring.Component):
    """Tracks the part of a frame that is at hand, and the bytes of it so far.

    Parameters
    ----------
    answer_bits : int
        That the length of an answer's payload has.

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
    hold : In
        The request, or its answer, waits for the end of a run.
    measure, measured : In
        Before its verdict it must be known where the request's bytes end; it is.
    good : In
        The request may be executed.
    transfer, prepare : In
        If so: it writes to memory; it reads or writes a region's description.
    moved : In
        What it writes has been handed over, or refused.
    walking : In
        A description is read.
    quiet : In
        The request gets no answer.
    answer : In(answer_bits)
        Bytes of the answer's payload.
    header : Out
        The request's, as it came.
    index : Out
        Bytes of this part with this one: from 1 up.
    hunting, inside, in_payload : Out
        Between frames; in a request; in its payload.
    refuse, execute : Out
        Strobes: BAD_CRC or BAD_LENGTH; what the rules say is to be done.
    judging, measuring, moving, preparing : Out
        As long as ``hold`` is high the request is ``judging`` or ``preparing``.
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
    hold: Signal
    measure: Signal
    measured: Signal
    good: Signal
    transfer: Signal
    prepare: Signal
    moved: Signal
    walking: Signal
    quiet: Signal
    answer: Signal
    header: data.View
    index: Signal
    hunting: Signal
    inside: Signal
    in_payload: Signal
    refuse: Signal
    judging: Signal
    measuring: Signal
    execute: Signal
    moving: Signal
    preparing: Signal
    beginning: Signal
    in_header: Signal
    answering: Signal
    sealing: Signal

    def __init__(self, *, answer_bits: int) -> None:
        super().__init__(
            {
                "byte": In(8),
                **dict.fromkeys(_INPUTS, In(1)),
                "answer": In(answer_bits),
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
            m.next = "judge"
            with m.If(~self.sound | self.too_long):
                m.d.comb += self.refuse.eq(1)
                m.next = "send the start"
        with m.State("judge"):
            m.d.comb += self.judging.eq(1)
            with m.If(~self.hold):
                m.next = "execute"
                with m.If(self.measure):
                    m.next = "measure"
        with m.State("measure"):
            m.d.comb += self.measuring.eq(1)
            with m.If(self.measured):
                m.next = "execute"
        with m.State("execute"):
            m.d.comb += self.execute.eq(1)
            m.next = "send the start"
            with m.If(self.good & self.transfer):
                m.next = "move"
            with m.Elif(self.good & self.prepare):
                m.next = "prepare"
        with m.State("move"):
            m.d.comb += self.moving.eq(1)
            with m.If(self.moved):
                m.next = "send the start"
        with m.State("prepare"):
            m.d.comb += self.preparing.eq(1)
            with m.If(~self.walking & ~self.hold):
                m.next = "send the start"

    def _send(self, m: Module) -> None:
        """The answer goes, if there is one."""
        with m.State("send the start"):
            with m.If(self.quiet):
                m.next = "hunt for the start"
            with m.Else():
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
            with m.If(self.sent & (self.index[: len(self.answer)] == self.answer)):
                self._begin(m, "send the checksum")
        with m.State("send the checksum"):
            m.d.comb += self.sealing.eq(1)
            with m.If(self.sent & (self.index[:3] == CRC_BYTES)):
                m.next = "hunt for the start"

"""From requests and their payload to judged requests."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from .layouts import Arguments, FrameHeader, JudgedRequest, Request
from .protocol import Command, Status
from .request_checker import ARGUMENT_BYTES, RequestChecker


class RequestReader(wiring.Component):
    """Takes the arguments off the payload, has the request judged, drops what may not be executed.

    A judged request is offered until it has been executed *and* answered; only then is the next
    one judged, so that its judgement sees what the one before did.

    The sequence number of the last accepted RUN is remembered until a WRITE or a RESET is
    accepted. A RUN with that number is the same one, sent again because its answer was lost.

    Members
    -------
    requests : In(stream of Request)
    payload : In(stream of bytes)
        Payloads of the requests that are OK.
    running : In
        A program runs.
    judged : Out(stream of JudgedRequest)
        ``ready`` means done.
    data : Out(stream of bytes)
        While a judged WRITE that is OK is offered: its data.
    """

    requests: stream.Interface
    payload: stream.Interface
    running: Signal
    judged: stream.Interface
    data: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "requests": In(stream.Signature(Request)),
                "payload": In(stream.Signature(8)),
                "running": In(1),
                "judged": Out(stream.Signature(JudgedRequest)),
                "data": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checker = checker = RequestChecker(configuration=self._configuration)
        m.submodules.last_run = last_run = _LastRun()
        header, arguments = Signal(FrameHeader), Signal(Arguments)
        verdict = Signal(3)
        wanted, gathered = Signal(range(7)), Signal(range(7))
        unread = Signal(16)
        complete = (gathered == wanted) | (unread == 0)

        m.d.comb += [
            checker.header.eq(header),
            checker.arguments.eq(arguments),
            checker.running.eq(self.running),
            checker.repeated.eq(last_run.repeated),
            last_run.command.eq(header.command),
            last_run.sequence.eq(header.sequence),
            last_run.accept.eq(self.judged.valid & self.judged.ready & (verdict == Status.OK)),
            self.judged.p.header.eq(header),
            self.judged.p.arguments.eq(arguments),
            self.judged.p.verdict.eq(verdict),
            self.judged.p.repeated.eq(last_run.repeated),
            self.data.payload.eq(self.payload.payload),
        ]
        with m.If(self.payload.valid & self.payload.ready):
            m.d.sync += [gathered.eq(gathered + 1), unread.eq(unread - 1)]

        with m.FSM():
            with m.State("wait for a request"):
                m.d.comb += self.requests.ready.eq(1)
                m.d.sync += [
                    header.eq(self.requests.p.header),
                    verdict.eq(self.requests.p.verdict),
                    unread.eq(self.requests.p.header.length),
                    gathered.eq(0),
                    wanted.eq(0),
                ]
                for command, argument_bytes in ARGUMENT_BYTES.items():
                    with m.If(self.requests.p.header.command == command):
                        m.d.sync += wanted.eq(argument_bytes)
                with m.If(self.requests.valid):
                    m.next = "gather the arguments"
                    with m.If(self.requests.p.verdict != Status.OK):
                        m.next = "offer"
            with m.State("gather the arguments"):
                m.d.comb += [self.payload.ready.eq(~complete), checker.start.eq(complete)]
                m.d.sync += arguments[gathered].eq(self.payload.payload)
                with m.If(complete):
                    m.next = "judge"
            with m.State("judge"):
                m.d.sync += verdict.eq(checker.verdict)
                with m.If(checker.done):
                    m.next = "offer"
                    with m.If(checker.verdict != Status.OK):
                        m.next = "drop the rest"
            with m.State("drop the rest"):
                m.d.comb += self.payload.ready.eq(unread != 0)
                with m.If(unread == 0):
                    m.next = "offer"
            with m.State("offer"):
                m.d.comb += [
                    self.judged.valid.eq(1),
                    self.data.valid.eq(self.payload.valid),
                    self.payload.ready.eq(self.data.ready),
                ]
                with m.If(self.judged.ready):
                    m.next = "wait for a request"
        return m


class _LastRun(wiring.Component):
    """The sequence number of the last RUN, to know it again; see :class:`RequestReader`."""

    command: Signal
    sequence: Signal
    accept: Signal
    repeated: Signal

    def __init__(self) -> None:
        super().__init__({"command": In(8), "sequence": In(8), "accept": In(1), "repeated": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        known, last = Signal(), Signal(8)
        m.d.comb += self.repeated.eq(known & (last == self.sequence))
        with m.If(self.accept):
            with m.If(self.command == Command.RUN):
                m.d.sync += [known.eq(1), last.eq(self.sequence)]
            with m.Elif((self.command == Command.WRITE) | (self.command == Command.RESET)):
                m.d.sync += known.eq(0)
        return m

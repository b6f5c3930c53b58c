"""From requests and their payload to judged requests."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from .layouts import Arguments, FrameHeader, JudgedRequest, Request
from .protocol import Command, Status
from .request_checker import ARGUMENT_BYTES, RequestChecker


class RequestReader(wiring.Component):
    """Takes the arguments off the payload, has the request judged, drops what may not be executed.

    A judged request is offered until it has been executed *and* answered; only then is the next
    one judged, so that its judgement sees what the one before did.

    The sequence number of the last accepted RUN is remembered until a WRITE, RESET or OPEN is
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
    write_data : Out(stream of bytes)
        While a judged WRITE that is OK is offered: its data.
    """

    requests: stream.Interface
    payload: stream.Interface
    running: Signal
    judged: stream.Interface
    write_data: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "requests": In(stream.Signature(Request)),
                "payload": In(stream.Signature(8)),
                "running": In(1),
                "judged": Out(stream.Signature(JudgedRequest)),
                "write_data": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checker = checker = RequestChecker(configuration=self._configuration)
        m.submodules.steps = steps = _Steps()
        m.submodules.last_run = last_run = _LastRun()
        header, arguments = Signal(FrameHeader), Signal(Arguments)
        verdict = Signal(3)
        wanted, gathered = Signal(range(7)), Signal(range(7))
        unread = Signal(16)

        m.d.comb += [
            steps.request.eq(self.requests.valid),
            steps.sound.eq(self.requests.p.verdict == Status.OK),
            steps.complete.eq((gathered == wanted) | (unread == 0)),
            steps.judged.eq(checker.done),
            steps.good.eq(checker.verdict == Status.OK),
            steps.empty.eq(unread == 0),
            steps.done.eq(self.judged.ready),
            checker.start.eq(steps.gathering & steps.complete),
            checker.header.eq(header),
            checker.arguments.eq(arguments),
            checker.running.eq(self.running),
            checker.repeated.eq(last_run.repeated),
            last_run.command.eq(header.command),
            last_run.sequence.eq(header.sequence),
            last_run.accept.eq(self.judged.valid & self.judged.ready & (verdict == Status.OK)),
            self.requests.ready.eq(steps.waiting),
            self.judged.valid.eq(steps.offering),
            self.judged.p.header.eq(header),
            self.judged.p.arguments.eq(arguments),
            self.judged.p.verdict.eq(verdict),
            self.judged.p.repeated.eq(last_run.repeated),
            self.write_data.payload.eq(self.payload.payload),
            self.write_data.valid.eq(self.payload.valid & steps.offering),
            self.payload.ready.eq(
                steps.gathering & ~steps.complete
                | steps.dropping & (unread != 0)
                | steps.offering & self.write_data.ready
            ),
        ]
        with m.If(steps.waiting):
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
        with m.Elif(checker.done):
            m.d.sync += verdict.eq(checker.verdict)
        with m.If(self.payload.valid & self.payload.ready):
            m.d.sync += [gathered.eq(gathered + 1), unread.eq(unread - 1)]
            with m.If(steps.gathering):
                m.d.sync += arguments[gathered].eq(self.payload.payload)
        return m


class _Steps(wiring.Component):
    """Where a request is on its way; see :class:`RequestReader`."""

    request: Signal
    sound: Signal
    complete: Signal
    judged: Signal
    good: Signal
    empty: Signal
    done: Signal
    waiting: Signal
    gathering: Signal
    dropping: Signal
    offering: Signal

    def __init__(self) -> None:
        inputs = ("request", "sound", "complete", "judged", "good", "empty", "done")
        outputs = ("waiting", "gathering", "dropping", "offering")
        super().__init__({**dict.fromkeys(inputs, In(1)), **dict.fromkeys(outputs, Out(1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.FSM():
            with m.State("wait for a request"):
                m.d.comb += self.waiting.eq(1)
                with m.If(self.request):
                    m.next = "offer"
                    with m.If(self.sound):
                        m.next = "gather the arguments"
            with m.State("gather the arguments"):
                m.d.comb += self.gathering.eq(1)
                with m.If(self.complete):
                    m.next = "judge"
            with m.State("judge"):
                with m.If(self.judged):
                    m.next = "drop the rest"
                    with m.If(self.good):
                        m.next = "offer"
            with m.State("drop the rest"):
                m.d.comb += self.dropping.eq(1)
                with m.If(self.empty):
                    m.next = "offer"
            with m.State("offer"):
                m.d.comb += self.offering.eq(1)
                with m.If(self.done):
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
            with m.Elif(self.command.matches(Command.WRITE, Command.RESET, Command.OPEN)):
                m.d.sync += known.eq(0)
        return m

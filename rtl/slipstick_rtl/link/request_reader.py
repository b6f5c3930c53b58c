"""Reads requests and their payload, and judges them."""

from amaranth.hdl import Module, Signal, Value
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
        self._checker = RequestChecker(configuration=configuration)
        self._steps = _Steps()
        self._last_run = _LastRun()
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
        m.submodules.checker = checker = self._checker
        m.submodules.steps = steps = self._steps
        m.submodules.last_run = self._last_run
        header, arguments = Signal(FrameHeader), Signal(Arguments)
        verdict = Signal(3)
        wanted, gathered = Signal(range(7)), Signal(range(7))
        unread = Signal(16)
        # registers, as much hangs on them
        complete, all_read = Signal(), Signal()

        m.d.comb += [
            steps.request.eq(self.requests.valid),
            steps.sound.eq(self.requests.p.verdict == Status.OK),
            steps.complete.eq(complete),
            steps.judged.eq(checker.done),
            steps.good.eq(checker.verdict == Status.OK),
            steps.empty.eq(all_read),
            steps.done.eq(self.judged.ready),
        ]
        self._judge(m, header, arguments)
        self._know_again(m, header, verdict)
        self._offer(m, header, arguments, verdict)
        self._pass_payload(m)
        with m.If(steps.waiting):
            m.d.sync += [header.eq(self.requests.p.header), verdict.eq(self.requests.p.verdict)]
            self._begin(m, unread, gathered, wanted)
            empty = self.requests.p.header.length == 0
            m.d.sync += [all_read.eq(empty), complete.eq(empty | self._without_arguments())]
        with m.Elif(checker.done):
            m.d.sync += verdict.eq(checker.verdict)
        with m.If(self.payload.valid & self.payload.ready):
            m.d.sync += [
                gathered.eq(gathered + 1),
                unread.eq(unread - 1),
                all_read.eq(unread == 1),
                complete.eq((gathered + 1 == wanted) | (unread == 1)),
            ]
        # these bytes are taken at once: nothing here hangs on a memory's being ready
        with m.If(self.payload.valid & steps.gathering & ~complete):
            m.d.sync += arguments[gathered].eq(self.payload.payload)
        return m

    def _judge(self, m: Module, header: data.View, arguments: data.View) -> None:
        """The checker sees a request that has all its arguments."""
        steps, checker = self._steps, self._checker
        m.d.comb += [
            checker.start.eq(steps.gathering & steps.complete),
            checker.header.eq(header),
            checker.arguments.eq(arguments),
            checker.running.eq(self.running),
            checker.repeated.eq(self._last_run.repeated),
        ]

    def _know_again(self, m: Module, header: data.View, verdict: Signal) -> None:
        """What is needed to tell a RUN sent again from a new one."""
        done = self.judged.valid & self.judged.ready
        m.d.comb += [
            self._last_run.command.eq(header.command),
            self._last_run.sequence.eq(header.sequence),
        ]
        # the header is there for a cycle more
        m.d.sync += self._last_run.accept.eq(done & (verdict == Status.OK))

    def _offer(self, m: Module, header: data.View, arguments: data.View, verdict: Signal) -> None:
        """Requests come in one at a time, and go out judged."""
        m.d.comb += [
            self.requests.ready.eq(self._steps.waiting),
            self.judged.valid.eq(self._steps.offering),
            self.judged.p.header.eq(header),
            self.judged.p.arguments.eq(arguments),
            self.judged.p.verdict.eq(verdict),
            self.judged.p.repeated.eq(self._last_run.repeated),
        ]

    def _pass_payload(self, m: Module) -> None:
        """The payload's bytes are gathered as arguments, dropped, or passed on as WRITE's data."""
        steps = self._steps
        m.d.comb += [
            self.write_data.payload.eq(self.payload.payload),
            self.write_data.valid.eq(self.payload.valid & steps.offering),
            self.payload.ready.eq(
                steps.gathering & ~steps.complete
                | steps.dropping & ~steps.empty
                | steps.offering & self.write_data.ready
            ),
        ]

    def _without_arguments(self) -> Value:
        """The offered request's command has none, or is unknown."""
        wanting = [command for command, argument_bytes in ARGUMENT_BYTES.items() if argument_bytes]
        return ~self.requests.p.header.command.matches(*wanting)

    def _begin(self, m: Module, unread: Signal, gathered: Signal, wanted: Signal) -> None:
        """All of the payload is to come, the command's arguments first."""
        request = self.requests.p.header
        m.d.sync += [unread.eq(request.length), gathered.eq(0), wanted.eq(0)]
        for command, argument_bytes in ARGUMENT_BYTES.items():
            with m.If(request.command == command):
                m.d.sync += wanted.eq(argument_bytes)


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

"""Reads requests and their payload, and judges them."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from .layouts import Arguments, Completions, DataByte, FrameHeader, JudgedRequest, Request
from .protocol import Command, Status
from .request_checker import ARGUMENT_BYTES, RequestChecker
from .request_order import RequestOrder


class RequestReader(wiring.Component):
    """Takes the arguments off the payload, has the request judged, drops what may not be executed.

    A judged request is offered until it has been executed *and* answered; only then is the next
    one judged, so that its judgement sees what the one before did. A WAITING request waits before
    it is judged: for the end of a run; a HOLD for its progress as well. The data of a request
    that has been executed already are dropped.

    Members
    -------
    requests : In(stream of Request)
    payload : In(stream of bytes)
        Payloads of the requests that are OK.
    running, bad_instruction : In
        A program runs; the last one met a bad instruction.
    done : In(Completions)
        Instructions that the program has completed. It does not fall while one runs.
    expired : In
        The request has been ``waiting`` long enough.
    executed : In
        With ``judged.ready``: the request has been executed.
    waiting : Out
        The request waits for the end of a run.
    judged : Out(stream of JudgedRequest)
        ``ready`` means done.
    write_data : Out(stream of DataByte)
        While a judged request that is OK is offered: its data.
    some_data : Out
        Bytes of the request have not been taken.
    next_sequence : Out(8)
    """

    requests: stream.Interface
    payload: stream.Interface
    running: Signal
    bad_instruction: Signal
    done: Signal
    expired: Signal
    executed: Signal
    waiting: Signal
    judged: stream.Interface
    write_data: stream.Interface
    some_data: Signal
    next_sequence: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._checker = RequestChecker(configuration=configuration)
        self._steps = _Steps()
        self._order = RequestOrder()
        super().__init__(
            {
                "requests": In(stream.Signature(Request)),
                "payload": In(stream.Signature(8)),
                **dict.fromkeys(("running", "bad_instruction", "expired", "executed"), In(1)),
                "done": In(Completions),
                "waiting": Out(1),
                "judged": Out(stream.Signature(JudgedRequest)),
                "write_data": Out(stream.Signature(DataByte)),
                "some_data": Out(1),
                "next_sequence": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checker = checker = self._checker
        m.submodules.steps = steps = self._steps
        m.submodules.order = order = self._order
        header, arguments = Signal(FrameHeader), Signal(Arguments)
        verdict = Signal(4)
        wanted, gathered = Signal(range(7)), Signal(range(7))
        unread = Signal(16)
        # registers, as much hangs on them
        complete, filled, all_read = Signal(), Signal(), Signal()
        holding = self._holding(m, header, arguments)
        done_before = order.repeated & header.command.code.matches(Command.WRITE, Command.PUT)

        m.d.comb += [
            steps.request.eq(self.requests.valid),
            steps.sound.eq(self.requests.p.verdict == Status.OK),
            steps.complete.eq(complete),
            steps.patient.eq(header.command.waiting),
            steps.enough.eq(order.early | ~holding | self.expired),
            steps.judged.eq(checker.done),
            steps.good.eq((checker.verdict == Status.OK) & ~done_before),
            steps.empty.eq(all_read),
            steps.done.eq(self.judged.ready),
            self.waiting.eq(steps.waiting),
            checker.filled.eq(filled),
            checker.data_bytes.eq(unread),
            checker.some_data.eq(~all_read),
            checker.running.eq(holding),
            self.some_data.eq(~all_read),
            self.write_data.p.last.eq(unread == 1),
        ]
        self._judge(m, header, arguments)
        self._keep_order(m, header)
        self._offer(m, header, arguments, verdict)
        self._pass_payload(m)
        with m.If(steps.listening):
            m.d.sync += [header.eq(self.requests.p.header), verdict.eq(self.requests.p.verdict)]
            self._begin(m, unread, gathered, wanted)
            empty = self.requests.p.header.length == 0
            m.d.sync += [
                all_read.eq(empty),
                filled.eq(self._without_arguments()),
                complete.eq(empty | self._without_arguments()),
            ]
        with m.Elif(checker.done):
            m.d.sync += verdict.eq(checker.verdict)
        with m.If(self.payload.valid & self.payload.ready):
            m.d.sync += [
                gathered.eq(gathered + 1),
                unread.eq(unread - 1),
                all_read.eq(unread == 1),
                complete.eq((gathered + 1 == wanted) | (unread == 1)),
                filled.eq(filled | (gathered + 1 == wanted)),
            ]
        # these bytes are taken at once: nothing here hangs on a memory's being ready
        with m.If(self.payload.valid & steps.gathering & ~complete):
            m.d.sync += arguments[gathered].eq(self.payload.payload)
        return m

    def _judge(self, m: Module, header: data.View, arguments: data.View) -> None:
        """The checker sees a request that has all its arguments."""
        steps, checker, order = self._steps, self._checker, self._order
        m.d.comb += [
            checker.start.eq(steps.ready),
            checker.header.eq(header),
            checker.arguments.eq(arguments),
            checker.bad_instruction.eq(self.bad_instruction),
            *(
                getattr(checker, name).eq(getattr(order, name))
                for name in ("unknown", "early", "repeated", "may_continue")
            ),
        ]

    def _holding(self, m: Module, header: data.View, arguments: data.View) -> Value:
        """Tells whether the run holds a WAITING request back.

        Arguments have a say a cycle after they came, no later than the request begins to wait.
        """
        counts = data.View(Completions, arguments.as_value()[: Completions.size])
        reached = Cat(self.done[k] >= counts[k] for k in range(Completions.length)).all()
        frees = Signal()
        m.d.sync += frees.eq((header.command.code == Command.HOLD) & reached)
        return self.running & ~frees

    def _keep_order(self, m: Module, header: data.View) -> None:
        """Gives ``RequestOrder`` the result of a request, which decides the one that is next."""
        order, checker = self._order, self._checker
        m.d.comb += [
            order.header.eq(header),
            order.in_turn.eq(checker.done & checker.in_turn),
            order.good.eq(checker.verdict == Status.OK),
            self.next_sequence.eq(order.next_sequence),
        ]
        # the header is there for a cycle more
        m.d.sync += order.executed.eq(self.judged.valid & self.judged.ready & self.executed)

    def _offer(self, m: Module, header: data.View, arguments: data.View, verdict: Signal) -> None:
        """Requests come in one at a time, and go out judged."""
        m.d.comb += [
            self.requests.ready.eq(self._steps.listening),
            self.judged.valid.eq(self._steps.offering),
            self.judged.p.header.eq(header),
            self.judged.p.arguments.eq(arguments),
            self.judged.p.verdict.eq(verdict),
            self.judged.p.repeated.eq(self._order.repeated),
        ]

    def _pass_payload(self, m: Module) -> None:
        """The payload's bytes are gathered as arguments, dropped, or passed on as data."""
        steps = self._steps
        m.d.comb += [
            self.write_data.p.data.eq(self.payload.payload),
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
        return ~self.requests.p.header.command.code.matches(*wanting)

    def _begin(self, m: Module, unread: Signal, gathered: Signal, wanted: Signal) -> None:
        """All of the payload is to come, the command's arguments first."""
        request = self.requests.p.header
        m.d.sync += [unread.eq(request.length), gathered.eq(0), wanted.eq(0)]
        for command, argument_bytes in ARGUMENT_BYTES.items():
            with m.If(request.command.code == command):
                m.d.sync += wanted.eq(argument_bytes)


class _Steps(wiring.Component):
    """Tracks the step that a request has reached; see :class:`RequestReader`."""

    request: Signal
    sound: Signal
    complete: Signal
    patient: Signal
    enough: Signal
    judged: Signal
    good: Signal
    empty: Signal
    done: Signal
    listening: Signal
    gathering: Signal
    waiting: Signal
    ready: Signal
    dropping: Signal
    offering: Signal

    def __init__(self) -> None:
        waits = ("patient", "enough")
        inputs = ("request", "sound", "complete", *waits, "judged", "good", "empty", "done")
        outputs = ("listening", "gathering", "waiting", "ready", "dropping", "offering")
        super().__init__({**dict.fromkeys(inputs, In(1)), **dict.fromkeys(outputs, Out(1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.FSM():
            with m.State("listen for a request"):
                m.d.comb += self.listening.eq(1)
                with m.If(self.request):
                    m.next = "offer"
                    with m.If(self.sound):
                        m.next = "gather the arguments"
            with m.State("gather the arguments"):
                m.d.comb += self.gathering.eq(1)
                with m.If(self.complete):
                    m.d.comb += self.ready.eq(~self.patient)
                    m.next = "judge"
                    with m.If(self.patient):
                        m.next = "wait for the end of a run"
            with m.State("wait for the end of a run"):
                m.d.comb += [self.waiting.eq(1), self.ready.eq(self.enough)]
                with m.If(self.enough):
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
                    m.next = "listen for a request"
        return m

"""Executes judged requests and answers them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from .identity import Identity
from .interfaces import AcceleratorInterface
from .layouts import (
    DataByte,
    JudgedRequest,
    OpenArguments,
    RegionArgument,
    Response,
    RunArguments,
    SpaceArguments,
)
from .memory_transfers import MemoryTransfers
from .protocol import Status
from .request_decoder import MEANING, RequestDecoder
from .response_sender import ResponseSender

SETTLE_CYCLES = 4
"""Cycles in which ``status.running`` must follow ``run`` and ``reset_run``."""


_FLAGS = 4
"""Bits of a status before its counters."""


class _Steps(wiring.Component):
    """One request: ``begin``, what takes time, ``answer`` unless ``quiet``, until ``end``.

    ``quiet`` is looked at when all else is done. ``free`` lets a quiet request end, a cycle after
    ``silence``.
    """

    valid: Signal
    settle: Signal
    wait: Signal
    transfer: Signal
    enough: Signal
    good: Signal
    transferred: Signal
    quiet: Signal
    free: Signal
    answered: Signal
    begin: Signal
    waiting: Signal
    start: Signal
    transferring: Signal
    answer: Signal
    silence: Signal
    end: Signal

    def __init__(self) -> None:
        kind = ("valid", "settle", "wait", "transfer", "quiet")
        inputs = (*kind, "enough", "good", "transferred", "free", "answered")
        outputs = ("begin", "waiting", "start", "transferring", "answer", "silence", "end")
        super().__init__({**dict.fromkeys(inputs, In(1)), **dict.fromkeys(outputs, Out(1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settling = Signal(range(SETTLE_CYCLES))
        with m.FSM():
            with m.State("wait for a request"):
                m.d.comb += self.begin.eq(self.valid)
                m.d.sync += settling.eq(SETTLE_CYCLES - 1)
                with m.If(self.valid):
                    self._go_on(m)
                    with m.If(self.settle):
                        m.next = "settle"
                    with m.Elif(self.transfer & ~self.wait):
                        m.d.comb += self.start.eq(1)
                        m.next = "transfer"
            with m.State("settle"):
                m.d.sync += settling.eq(settling - 1)
                with m.If(settling == 0):
                    self._go_on(m)
            with m.State("wait for the end of the run"):
                m.d.comb += self.waiting.eq(1)
                with m.If(self.enough):
                    m.next = "answer"
                    with m.If(self.good & self.transfer):
                        m.next = "start the transfer"
            with m.State("start the transfer"):
                m.d.comb += self.start.eq(1)
                m.next = "transfer"
            with m.State("transfer"):
                m.d.comb += self.transferring.eq(1)
                with m.If(self.transferred):
                    m.next = "answer"
            with m.State("answer"):
                m.d.comb += [
                    self.answer.eq(~self.quiet),
                    self.silence.eq(self.quiet & self.free),
                ]
                with m.If(self.answer):
                    m.next = "finish"
                with m.If(self.silence):
                    m.next = "finish silently"
            with m.State("finish silently"):
                m.d.comb += self.end.eq(1)
                m.next = "wait for a request"
            with m.State("finish"):
                m.d.comb += self.end.eq(self.answered)
                with m.If(self.answered):
                    m.next = "wait for a request"
        return m

    def _go_on(self, m: Module) -> None:
        """With what takes time, if anything does."""
        m.next = "answer"
        with m.If(self.wait):
            m.next = "wait for the end of the run"
        with m.Elif(self.transfer):
            m.next = "start the transfer"


class CommandProcessor(AcceleratorInterface):
    """Executes one request after the other.

    Data take a byte a cycle; the answer leaves when the last byte has been handed over. The answer
    to a READ or GET begins before its first byte has come, and passes each byte on as it comes.
    The counters of a STATUS are all of one cycle. A session begins as the answer to its OPEN does;
    or would do, as nobody hears of a silent request that is OK.

    Members
    -------
    judged : In(stream of JudgedRequest)
        Accepted when executed and answered.
    write_data : In(stream of DataByte)
        The data of a WRITE, PUT or DEFINE.
    some_data : In
        The request has data that have not been taken.
    next_sequence : In(8)
        For STATUS.
    expired : In
        The request has been ``waiting`` long enough.
    waiting : Out
        The request waits for the end of the run that it has begun.
    executed : Out
        With ``judged.ready``: the request has been executed.
    responses, response_data : Out(stream of Response, of bytes)
    session : Out
        0 before the first OPEN. A request that is judged sees what the one before left.
    writes, reads, read_data, run, pcs, clear, reset_run, status
        As :class:`slipstick_rtl.link.link.Link` has them.
    """

    judged: stream.Interface
    write_data: stream.Interface
    some_data: Signal
    next_sequence: Signal
    expired: Signal
    waiting: Signal
    executed: Signal
    responses: stream.Interface
    response_data: stream.Interface
    session: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self._decoder = RequestDecoder()
        self._steps = _Steps()
        self._transfers = MemoryTransfers(configuration=configuration)
        self._sender = ResponseSender()
        super().__init__(
            {
                "judged": In(stream.Signature(JudgedRequest)),
                "write_data": In(stream.Signature(DataByte)),
                "some_data": In(1),
                "next_sequence": In(8),
                "expired": In(1),
                "waiting": Out(1),
                "executed": Out(1),
                "responses": Out(stream.Signature(Response)),
                "response_data": Out(stream.Signature(8)),
                "session": Out(OpenArguments.size),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = self._decoder
        m.submodules.steps = steps = self._steps
        m.submodules.transfers = self._transfers
        m.submodules.sender = self._sender
        self._connect_streams(m)
        # a cycle for the decoder: what it says of the request is held beside it
        decoded = Signal()
        meaning = Signal(MEANING)
        m.d.sync += decoded.eq(self.judged.valid & ~self.judged.ready)
        m.d.sync += [meaning[name].eq(getattr(decoder, name)) for name, _ in MEANING]
        m.d.comb += [
            # the request is still there, as it was not ready when it was decoded
            steps.valid.eq(decoded),
            steps.settle.eq(meaning.run | meaning.reset),
            steps.wait.eq(meaning.after),
            steps.transfer.eq(meaning.transfers),
            steps.enough.eq(~self.status.running | self.expired),
            steps.good.eq(~self.status.running & ~self.status.bad_instruction),
            steps.transferred.eq(self._transfers.done),
            steps.answered.eq(self._sender.done),
            # the seal of an answer that is on its way must stay
            steps.free.eq(~meaning.open | self.responses.ready),
            decoder.request.eq(self.judged.p),
            self.waiting.eq(steps.waiting),
        ]
        self._transfer(m, meaning)
        self._control(m, meaning)
        self._answer(m, meaning, self._final_verdict(m))
        return m

    def _connect_streams(self, m: Module) -> None:
        """Each stream of the face has one part behind it."""
        transfers, sender = self._transfers, self._sender
        connect(m, transfers.writes, flipped(self.writes))
        connect(m, flipped(self.write_data), transfers.data)
        connect(m, transfers.reads, flipped(self.reads))
        connect(m, flipped(self.read_data), sender.read_data)
        connect(m, sender.responses, flipped(self.responses))
        connect(m, sender.response_data, flipped(self.response_data))

    def _transfer(self, m: Module, meaning: data.View) -> None:
        """Whatever moves bytes to memory or from it."""
        transfers, request = self._transfers, self.judged.p
        arguments = request.arguments.as_value()
        target = data.View(SpaceArguments, arguments[: SpaceArguments.size])
        region = data.View(RegionArgument, arguments[: RegionArgument.size])
        m.d.comb += [
            transfers.start.eq(self._steps.start),
            *(
                getattr(transfers, name).eq(meaning[name])
                for name in ("write", "put", "define", "read", "get")
            ),
            transfers.continues.eq(meaning.put & region.flag),
            transfers.space.eq(target.space),
            transfers.address.eq(target.address),
            transfers.region.eq(region.region),
            transfers.some.eq(self.some_data),
            transfers.read_count.eq(self._length(meaning)),
            transfers.defined_count.eq(arguments[RegionArgument.size :]),
        ]

    def _length(self, meaning: data.View) -> Value:
        """Bytes of the answer, if the request is OK."""
        return Mux(meaning.get, self._transfers.region_count, meaning.length)

    def _control(self, m: Module, meaning: data.View) -> None:
        """RUN, RUN_GET, RESET and OPEN."""
        steps, arguments = self._steps, self.judged.p.arguments.as_value()
        run = data.View(RunArguments, arguments[: RunArguments.size])
        m.d.comb += [
            self.run.eq(steps.begin & meaning.run),
            self.clear.eq(meaning.clear),
            self.pcs.eq(run.pcs),
            self.reset_run.eq(steps.begin & meaning.reset),
        ]
        begins = self.responses.valid & self.responses.ready | steps.silence
        with m.If(meaning.open & begins):
            m.d.sync += self.session.eq(arguments[: OpenArguments.size])

    def _final_verdict(self, m: Module) -> Signal:
        """The verdict, which may turn out to be another one while the request is executed."""
        steps, status, transfers = self._steps, self.status, self._transfers
        verdict = Signal(4)
        with m.If(steps.begin):
            m.d.sync += verdict.eq(self.judged.p.verdict)
        with m.Elif(steps.waiting):
            bad = Mux(status.bad_instruction, Status.BAD_INSTRUCTION, Status.OK)
            m.d.sync += verdict.eq(Mux(status.running, Status.BUSY, bad))
        with m.Elif(steps.transferring & transfers.refused):
            m.d.sync += verdict.eq(Status.BAD_ADDRESS)
        # a run that was begun counts, whatever came of it
        m.d.comb += self.executed.eq(
            (self.judged.p.verdict == Status.OK) & (verdict != Status.BAD_ADDRESS)
        )
        return verdict

    def _answer(self, m: Module, meaning: data.View, verdict: Signal) -> None:
        """The answer, whose sending ends the request."""
        sender, request = self._sender, self.judged.p
        good = verdict == Status.OK
        packed = Identity.of(self._configuration).pack()
        identity = Const(int.from_bytes(packed, "little"), 8 * len(packed))
        status = self.status.as_value()
        # the flags fill a byte of their own
        record = Cat(status[:_FLAGS], Const(0, 8 - _FLAGS), status[_FLAGS:], self.next_sequence)
        first = Mux(meaning.identify, identity, record[: len(identity)])
        m.d.comb += [
            self._steps.quiet.eq(request.header.command.silent & good),
            sender.start.eq(self._steps.answer),
            sender.header.verdict.eq(verdict),
            sender.header.sequence.eq(request.header.sequence),
            sender.header.length.eq(Mux(good, self._length(meaning), 0)),
            sender.header.sealed.eq(meaning.sealed),
            sender.record.eq(Cat(first, record[len(identity) :])),
            sender.from_memory.eq(meaning.read | meaning.get),
            self.judged.ready.eq(self._steps.end),
        ]

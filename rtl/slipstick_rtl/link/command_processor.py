"""Executes judged requests and answers them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from .identity import Identity
from .interfaces import AcceleratorInterface
from .layouts import JudgedRequest, OpenArguments, Response, RunArguments, SpaceArguments
from .memory_transfers import MemoryReader, MemoryWriter
from .protocol import RUN_CLEARS_COUNTERS
from .request_decoder import MEANING, RequestDecoder
from .response_sender import ResponseSender
from .spaces import WRITE_ARGUMENTS

SETTLE_CYCLES = 4
"""Cycles in which ``status.running`` must follow ``run`` and ``reset_run``."""


class _Steps(wiring.Component):
    """One request: ``begin``, then what takes time, then ``answer``, until ``answered``."""

    valid: Signal
    write: Signal
    settle: Signal
    writing: Signal
    answered: Signal
    begin: Signal
    answer: Signal

    def __init__(self) -> None:
        inputs = dict.fromkeys(("valid", "write", "settle", "writing", "answered"), In(1))
        super().__init__({**inputs, "begin": Out(1), "answer": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settling = Signal(range(SETTLE_CYCLES))
        with m.FSM():
            with m.State("wait for a request"):
                m.d.comb += self.begin.eq(self.valid)
                m.d.sync += settling.eq(SETTLE_CYCLES - 1)
                with m.If(self.valid):
                    m.next = "answer"
                    with m.If(self.write):
                        m.next = "write"
                    with m.Elif(self.settle):
                        m.next = "settle"
            with m.State("write"):
                with m.If(~self.writing):
                    m.next = "answer"
            with m.State("settle"):
                m.d.sync += settling.eq(settling - 1)
                with m.If(settling == 0):
                    m.next = "answer"
            with m.State("answer"):
                m.d.comb += self.answer.eq(1)
                m.next = "finish"
            with m.State("finish"):
                with m.If(self.answered):
                    m.next = "wait for a request"
        return m


class CommandProcessor(AcceleratorInterface):
    """Executes one request after the other.

    A WRITE takes a byte a cycle; its answer leaves when its last byte has been handed over. The
    answer to a READ begins before its first byte has come, and passes each byte on as it comes.
    The counters of a STATUS are all of one cycle. A session begins as the answer to its OPEN does.

    Members
    -------
    judged : In(stream of JudgedRequest)
        Accepted when executed and answered.
    write_data : In(stream of bytes)
        The data of a WRITE.
    responses, response_data : Out(stream of Response, of bytes)
    session : Out
        0 before the first OPEN. A request that is judged sees what the one before left.
    writes, reads, read_data, run, pcs, clear, reset_run, status
        As :class:`slipstick_rtl.link.link.Link` has them.
    """

    judged: stream.Interface
    write_data: stream.Interface
    responses: stream.Interface
    response_data: stream.Interface
    session: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self._decoder = RequestDecoder()
        self._steps = _Steps()
        self._writer = MemoryWriter(configuration=configuration)
        self._reader = MemoryReader()
        self._sender = ResponseSender()
        super().__init__(
            {
                "judged": In(stream.Signature(JudgedRequest)),
                "write_data": In(stream.Signature(8)),
                "responses": Out(stream.Signature(Response)),
                "response_data": Out(stream.Signature(8)),
                "session": Out(OpenArguments.size),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = self._decoder
        m.submodules.steps = steps = self._steps
        m.submodules.writer = self._writer
        m.submodules.reader = self._reader
        m.submodules.sender = self._sender
        self._connect_streams(m)
        # a cycle for the decoder: what it says of the request is held beside it
        decoded, meaning = Signal(), Signal(MEANING)
        m.d.sync += decoded.eq(self.judged.valid & ~self.judged.ready)
        m.d.sync += [meaning[name].eq(getattr(decoder, name)) for name, _ in MEANING]
        m.d.comb += [
            # the request is still there, as it was not ready when it was decoded
            steps.valid.eq(decoded),
            steps.write.eq(meaning.write),
            steps.settle.eq(meaning.run | meaning.reset),
            steps.writing.eq(self._writer.busy),
            steps.answered.eq(self._sender.done),
            decoder.request.eq(self.judged.p),
        ]
        self._transfer(m, meaning)
        self._control(m, meaning)
        self._answer(m, meaning)
        return m

    def _connect_streams(self, m: Module) -> None:
        """Each stream of the face has one part behind it."""
        writer, reader, sender = self._writer, self._reader, self._sender
        connect(m, writer.writes, flipped(self.writes))
        connect(m, flipped(self.write_data), writer.data)
        connect(m, reader.reads, flipped(self.reads))
        connect(m, flipped(self.read_data), sender.read_data)
        connect(m, sender.responses, flipped(self.responses))
        connect(m, sender.response_data, flipped(self.response_data))

    def _transfer(self, m: Module, meaning: data.View) -> None:
        """WRITE and READ."""
        begin, writer, reader = self._steps.begin, self._writer, self._reader
        request = self.judged.p
        target = data.View(SpaceArguments, request.arguments.as_value()[: SpaceArguments.size])
        m.d.comb += [
            writer.start.eq(begin & meaning.write),
            writer.space.eq(target.space),
            writer.address.eq(target.address),
            writer.count.eq(request.header.length - WRITE_ARGUMENTS),
            reader.start.eq(begin & meaning.read),
            reader.address.eq(target.address),
            reader.count.eq(target.count),
        ]

    def _control(self, m: Module, meaning: data.View) -> None:
        """RUN, RESET and OPEN."""
        begin = self._steps.begin
        arguments = self.judged.p.arguments.as_value()
        run = data.View(RunArguments, arguments[: RunArguments.size])
        m.d.comb += [
            self.run.eq(begin & meaning.run),
            self.clear.eq(run.flags & RUN_CLEARS_COUNTERS),
            self.pcs.eq(run.pcs),
            self.reset_run.eq(begin & meaning.reset),
        ]
        with m.If(meaning.open & self.responses.valid & self.responses.ready):
            m.d.sync += self.session.eq(arguments[: OpenArguments.size])

    def _answer(self, m: Module, meaning: data.View) -> None:
        """The answer, whose sending ends the request."""
        sender, request = self._sender, self.judged.p
        identity = int.from_bytes(Identity.of(self._configuration).pack(), "little")
        status = self.status.as_value()
        # the two flags fill a byte of their own
        record = Cat(status[:2], Const(0, 6), status[2:])
        m.d.comb += [
            sender.start.eq(self._steps.answer),
            sender.header.verdict.eq(request.verdict),
            sender.header.sequence.eq(request.header.sequence),
            sender.header.length.eq(meaning.length),
            sender.header.sealed.eq(meaning.sealed),
            sender.record.eq(Mux(meaning.identify, identity, record)),
            sender.from_memory.eq(meaning.read),
            self.judged.ready.eq(sender.done),
        ]

"""Proves that the executor ignores requests that are refused, and never stands still."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.command_processor import CommandProcessor
from slipstick_rtl.link.frame_transmitter import FrameTransmitter
from slipstick_rtl.link.layouts import DataByte, JudgedRequest, Request, Response, RunStatus
from slipstick_rtl.link.protocol import Command, Status
from slipstick_rtl.link.request_decoder import MEANING
from slipstick_rtl.link.request_reader import RequestReader

from .proof_link_progress import always_within
from .registry import Proof

STALL_CYCLES = 14
"""Without a byte moved or a request taken, while everything around is ready: fewer than these. The
cycles in which a region is looked up do not count: they are ``REGION_BYTES`` at most."""
READER_STALL_CYCLES = 12
TRANSMITTER_STALL_CYCLES = 5

_SHORT_BYTES = 8
_READER_CYCLES = 26
"""Looked at from the start: enough for a request and the next one."""
_LAST_STATE = 4
"""Number of the transmitter's last state."""

SMALL = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    instruction_words=64,
    payload_bytes=64,
)

_OUTPUTS = ("writes", "reads", "responses", "response_data")
_WAIT, _START, _TRANSFER, _FINISH = 2, 3, 5, 6
"""Numbers of the processor's steps, in the order in which its FSM names them."""
_IDLE, _LOOK_UP, _MOVE = 0, 3, 6
"""Numbers of the transfers' steps."""
_SEND_HEADER, _SEND_PAYLOAD = 1, 2
"""Numbers of the sender's states."""


def offers_stand(m: Module, port: Any, name: str) -> None:
    """Assumes that what is offered to a stream stays, unchanged, until it is taken."""
    waited = Signal(name=f"{name}_waited")
    payload = Signal.like(Value.cast(port.payload), name=f"{name}_offered")
    m.d.sync += [waited.eq(port.valid & ~port.ready), payload.eq(Value.cast(port.payload))]
    m.d.comb += Assume(
        ~waited | port.valid & (Value.cast(port.payload) == payload), f"{name} stands"
    )


class ProcessesOnlyWhatIsGood(wiring.Component):
    """The command processor, given requests of any verdict; and that it goes on.

    The ports below ``expired`` are signals of the processor.
    """

    judged: stream.Interface
    write_data: stream.Interface
    read_data: stream.Interface
    status: data.View
    writes_ready: Signal
    reads_ready: Signal
    responses_ready: Signal
    response_data_ready: Signal
    some_data: Signal
    expired: Signal
    decoded: Signal
    meaning: data.View
    verdict: Signal
    giving: Signal
    draining: Signal
    step: Signal
    transfer: Signal
    sending: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "judged": In(stream.Signature(JudgedRequest)),
                "write_data": In(stream.Signature(DataByte)),
                "read_data": In(stream.Signature(8)),
                "status": In(RunStatus),
                **dict.fromkeys((f"{name}_ready" for name in _OUTPUTS), In(1)),
                **dict.fromkeys(("some_data", "expired", "decoded", "giving", "draining"), In(1)),
                "meaning": In(MEANING),
                "verdict": In(4),
                "step": In(3),
                "transfer": In(3),
                "sending": In(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.processor = processor = CommandProcessor(configuration=SMALL)
        for name in ("judged", "write_data", "read_data"):
            connect(m, flipped(getattr(self, name)), getattr(processor, name))
        for name in _OUTPUTS:
            m.d.comb += getattr(processor, name).ready.eq(getattr(self, f"{name}_ready"))
        m.d.comb += [
            processor.status.eq(self.status),
            processor.some_data.eq(self.some_data),
            processor.expired.eq(self.expired),
        ]
        offers_stand(m, self.judged, "judged")
        self._assert_steps(m)
        self._assert_effects(m, processor)
        self._assert_answers(m, processor)
        self._assert_progress(m, processor)
        return m

    @property
    def _good(self) -> Value:
        return self.judged.valid & (self.judged.p.verdict == Status.OK)

    def _is(self, *commands: Command) -> Value:
        return self.judged.p.header.command.code.matches(*commands)

    def _assert_steps(self, m: Module) -> None:
        """Asserts in which states the processor can be, from which the rest follows."""
        meaning, moving = self.meaning, self.transfer == _MOVE
        new = self._good & ~self.judged.p.repeated
        wanted = {
            "write": new & self._is(Command.WRITE),
            "put": new & self._is(Command.PUT),
            "run": new & self._is(Command.RUN, Command.RUN_GET),
            "reset": self._good & self._is(Command.RESET, Command.OPEN),
            "open": self._good & self._is(Command.OPEN),
            "transfers": self._good,
            "after": self._good & self._is(Command.RUN_GET),
        }
        m.d.comb += [
            Assert((self.sending <= _SEND_PAYLOAD) & (self.transfer <= _MOVE), "it is in no state"),
            Assert((self.sending != 0) == (self.step == _FINISH), "an answer out of step"),
            Assert((self.step == 0) | self.decoded, "a step for no request"),
            Assert(~self.decoded | self.judged.valid, "no request"),
            *(
                Assert(~(self.decoded & meaning[name]) | condition, f"{name} for another request")
                for name, condition in wanted.items()
            ),
            Assert(
                (self.transfer == _IDLE) | moving | (self.step == _TRANSFER),
                "a transfer out of step",
            ),
            Assert((self.step != _TRANSFER) | meaning.transfers, "a transfer of nothing"),
            Assert((self.step != _START) | meaning.transfers, "a transfer of nothing begins"),
            Assert((self.step != _WAIT) | meaning.after, "it waits for no run"),
            Assert(
                ~self.giving | (self.step == _TRANSFER) & moving & (meaning.write | meaning.put),
                "bytes out of step",
            ),
            Assert(
                (self.step == 0)
                | (self.verdict == self.judged.p.verdict)
                | (self.judged.p.verdict == Status.OK),
                "another verdict",
            ),
        ]

    def _assert_effects(self, m: Module, processor: CommandProcessor) -> None:
        """And so it is: a request that is refused has no effect, a repeated one no second one."""
        opens = Signal()
        session, new = Signal(32), self._good & ~self.judged.p.repeated
        m.d.sync += [session.eq(processor.session), opens.eq(self._good & self._is(Command.OPEN))]
        m.d.comb += [
            Assert(
                ~processor.run | new & self._is(Command.RUN, Command.RUN_GET),
                "run for what is refused",
            ),
            Assert(
                ~processor.reset_run | self._good & self._is(Command.RESET, Command.OPEN),
                "reset_run for what is refused",
            ),
            Assert(
                ~processor.writes.valid | new & self._is(Command.WRITE, Command.PUT),
                "a byte is written for what is refused",
            ),
            Assert(opens | (processor.session == session), "a session for what is refused"),
            Assert(
                ~(processor.executed & self.judged.ready) | self._good,
                "what is refused counts as executed",
            ),
        ]

    def _assert_answers(self, m: Module, processor: CommandProcessor) -> None:
        """One answer for each request, but none for a silent one that is OK."""
        answered, responses = Signal(), processor.responses
        header = self.judged.p.header
        answer = responses.valid & responses.ready
        with m.If(self.judged.ready):
            m.d.sync += answered.eq(0)
        with m.Elif(answer):
            m.d.sync += answered.eq(1)
        silent = header.command.silent & (self.verdict == Status.OK)
        sending_header = self.sending == _SEND_HEADER
        m.d.comb += [
            Assert(answered == (self.sending == _SEND_PAYLOAD), "an answer too many"),
            Assert(~self.judged.ready | (answered == ~silent), "not one answer"),
            Assert((self.sending == 0) | ~silent, "a silent request is answered"),
            Assert(responses.valid == sending_header, "an answer unasked"),
            Assert(
                ~sending_header
                | (responses.p.verdict == self.verdict) & (responses.p.sequence == header.sequence),
                "another answer",
            ),
        ]

    def _assert_progress(self, m: Module, processor: CommandProcessor) -> None:
        ready = Cat(getattr(self, f"{name}_ready") for name in _OUTPUTS)
        ready = Cat(ready, self.write_data.valid, self.read_data.valid).all()
        waits = processor.waiting & self.status.running & ~self.expired
        moved = Cat(
            self.write_data.ready,
            processor.reads.valid,
            processor.response_data.valid,
            self.transfer == _LOOK_UP,
        ).any()
        always_within(
            m,
            ~ready | waits | ~self.judged.valid | moved | self.judged.ready,
            STALL_CYCLES,
            "the processor stands still",
            "processor",
        )


class TransmitterGoesOn(wiring.Component):
    """The transmitter, whose bytes are taken at once, and whose payload is there."""

    session: Signal
    responses: stream.Interface
    payload: Signal
    state: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "session": In(32),
                "responses": In(stream.Signature(Response)),
                "payload": In(8),
                "state": In(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = FrameTransmitter()
        connect(m, flipped(self.responses), transmitter.responses)
        m.d.comb += [
            transmitter.session.eq(self.session),
            transmitter.payload.valid.eq(1),
            transmitter.payload.payload.eq(self.payload),
            transmitter.o.ready.eq(1),
            Assert(self.state <= _LAST_STATE, "it is in no state"),
        ]
        always_within(
            m,
            transmitter.o.valid | self.responses.ready,
            TRANSMITTER_STALL_CYCLES,
            "the transmitter stands still",
            "transmitter",
        )
        return m


class ReaderGoesOn(wiring.Component):
    """The request reader, with short payloads that are there, and requests done at once.

    While it waits for the end of a run, that goes on and is not waited for too long.
    """

    requests: stream.Interface
    payload: Signal
    running: Signal
    expired: Signal
    executed: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "requests": In(stream.Signature(Request)),
                "payload": In(8),
                **dict.fromkeys(("running", "expired", "executed"), In(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = RequestReader(configuration=SMALL)
        connect(m, flipped(self.requests), reader.requests)
        m.d.comb += [
            reader.payload.valid.eq(1),
            reader.payload.payload.eq(self.payload),
            reader.running.eq(self.running),
            reader.expired.eq(self.expired),
            reader.executed.eq(self.executed),
            reader.write_data.ready.eq(1),
            reader.judged.ready.eq(1),
        ]
        offers_stand(m, self.requests, "requests")
        short = self.requests.p.header.length <= _SHORT_BYTES
        m.d.comb += Assume((self.requests.p.verdict != Status.OK) | short, "payloads are short")
        always_within(
            m,
            reader.payload.ready
            | self.requests.ready
            | reader.waiting & self.running & ~self.expired,
            READER_STALL_CYCLES,
            "the reader stands still",
            "reader",
        )
        return m


PROOFS = (
    Proof(
        name="command_processor",
        component=ProcessesOnlyWhatIsGood,
        depth=STALL_CYCLES + 2,
        probes={
            **{name: f"processor.{name}" for name in ("decoded", "meaning", "verdict")},
            **{name: f"processor.transfers.{name}" for name in ("giving", "draining")},
            "step": "processor.steps.fsm_state",
            "transfer": "processor.transfers.steps.fsm_state",
            "sending": "processor.sender.fsm_state",
        },
    ),
    Proof(
        name="frame_transmitter_goes_on",
        component=TransmitterGoesOn,
        depth=TRANSMITTER_STALL_CYCLES + 2,
        probes={"state": "transmitter.fsm_state"},
    ),
    Proof(
        name="request_reader_goes_on",
        component=ReaderGoesOn,
        depth=_READER_CYCLES,
        bounded=True,
    ),
)

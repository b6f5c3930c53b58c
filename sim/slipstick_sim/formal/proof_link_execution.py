"""Proves that the executor ignores requests that are refused, and never stands still."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.command_processor import CommandProcessor
from slipstick_rtl.link.frame_transmitter import FrameTransmitter
from slipstick_rtl.link.layouts import JudgedRequest, Request, Response, RunStatus
from slipstick_rtl.link.protocol import Status
from slipstick_rtl.link.request_reader import RequestReader

from .proof_link_progress import always_within
from .registry import Proof

STALL_CYCLES = 12
"""Without a byte moved or a request taken, while everything around is ready: fewer than these."""
TRANSMITTER_STALL_CYCLES = 5

_SHORT_BYTES = 8
_READER_CYCLES = 26
"""Looked at from the start: enough for a request and the next one."""
_LAST_STATE = 4

_SMALL = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    instruction_words=64,
    payload_bytes=64,
)

_OUTPUTS = ("writes", "reads", "responses", "response_data")
_WRITE, _FINISH = 2, 4
"""Of the processor's steps, in the order in which its FSM names them."""


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

    The ports below ``response_data_ready`` are signals of the processor.
    """

    judged: stream.Interface
    write_data: stream.Interface
    read_data: stream.Interface
    status: data.View
    writes_ready: Signal
    reads_ready: Signal
    responses_ready: Signal
    response_data_ready: Signal
    busy: Signal
    step: Signal
    sending: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "judged": In(stream.Signature(JudgedRequest)),
                "write_data": In(stream.Signature(8)),
                "read_data": In(stream.Signature(8)),
                "status": In(RunStatus),
                **dict.fromkeys((f"{name}_ready" for name in _OUTPUTS), In(1)),
                "busy": In(1),
                "step": In(3),
                "sending": In(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.processor = processor = CommandProcessor(configuration=_SMALL)
        for name in ("judged", "write_data", "read_data"):
            connect(m, flipped(getattr(self, name)), getattr(processor, name))
        for name in _OUTPUTS:
            m.d.comb += getattr(processor, name).ready.eq(getattr(self, f"{name}_ready"))
        m.d.comb += processor.status.eq(self.status)
        offers_stand(m, self.judged, "judged")
        self._assert_steps(m)
        self._assert_effects(m, processor)
        self._assert_progress(m, processor)
        return m

    def _assert_steps(self, m: Module) -> None:
        """What makes it so: the states in which the processor can be."""
        refused = self.judged.p.verdict != Status.OK
        m.d.comb += [
            Assert((self.step <= _LAST_STATE) & (self.sending <= 2), "it is in no state"),
            Assert((self.sending != 0) == (self.step == _FINISH), "an answer out of step"),
            Assert(~self.busy | (self.step == _WRITE), "a write out of step"),
            Assert((self.step == 0) | self.judged.valid, "a step for no request"),
            Assert((self.step != _WRITE) | ~refused, "a step for what is refused"),
        ]

    def _assert_effects(self, m: Module, processor: CommandProcessor) -> None:
        """And so it is: a request that is refused has no effect."""
        refused = self.judged.p.verdict != Status.OK
        session, was_refused = Signal(32), Signal()
        m.d.sync += [session.eq(processor.session), was_refused.eq(~self.judged.valid | refused)]
        m.d.comb += [
            *(
                Assert(
                    ~getattr(processor, effect) | self.judged.valid & ~refused,
                    f"{effect} for what is refused",
                )
                for effect in ("run", "reset_run")
            ),
            Assert(
                ~processor.writes.valid | self.judged.valid & ~refused,
                "a byte is written for what is refused",
            ),
            Assert(
                ~was_refused | (processor.session == session),
                "a session for what is refused",
            ),
        ]

    def _assert_progress(self, m: Module, processor: CommandProcessor) -> None:
        ready = Cat(getattr(self, f"{name}_ready") for name in _OUTPUTS)
        ready = Cat(ready, self.write_data.valid, self.read_data.valid).all()
        moved = processor.writes.valid | processor.response_data.valid
        always_within(
            m,
            ~ready | ~self.judged.valid | moved | self.judged.ready,
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
    """The request reader, with short payloads that are there, and requests done at once."""

    requests: stream.Interface
    payload: Signal
    running: Signal

    def __init__(self) -> None:
        super().__init__(
            {"requests": In(stream.Signature(Request)), "payload": In(8), "running": In(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = RequestReader(configuration=_SMALL)
        connect(m, flipped(self.requests), reader.requests)
        m.d.comb += [
            reader.payload.valid.eq(1),
            reader.payload.payload.eq(self.payload),
            reader.running.eq(self.running),
            reader.write_data.ready.eq(1),
            reader.judged.ready.eq(1),
        ]
        offers_stand(m, self.requests, "requests")
        short = self.requests.p.header.length <= _SHORT_BYTES
        m.d.comb += Assume((self.requests.p.verdict != Status.OK) | short, "payloads are short")
        always_within(
            m,
            reader.payload.ready | self.requests.ready,
            STALL_CYCLES,
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
            "busy": "processor.writer.busy",
            "step": "processor.steps.fsm_state",
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

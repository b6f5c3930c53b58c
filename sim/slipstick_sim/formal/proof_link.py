"""The link: streams keep the protocol, and nothing is done for a frame with a wrong checksum."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.link.frame_receiver import FrameReceiver
from slipstick_rtl.link.frame_transmitter import FrameTransmitter
from slipstick_rtl.link.layouts import Request, Response
from slipstick_rtl.link.protocol import Command, Status

from .registry import Proof

_POLYNOMIAL = 0xEDB88320
_ONES = (1 << 32) - 1
_RESIDUE = 0xDEBB20E3
"""Value of the CRC's register after the checksum of the bytes before it."""

_RECEIVER_PORTS = {
    "i": In(stream.Signature(8)),
    "session": In(32),
    "requests": Out(stream.Signature(Request)),
    "payload": Out(stream.Signature(8)),
}


def _receiver() -> FrameReceiver:
    return FrameReceiver(payload_bytes=2, timeout_cycles=3)


def _connect(m: Module, outside: Any, receiver: FrameReceiver) -> None:
    m.d.comb += receiver.session.eq(outside.session)
    connect(m, flipped(outside.i), receiver.i)
    connect(m, receiver.requests, flipped(outside.requests))
    connect(m, receiver.payload, flipped(outside.payload))


def keeps_protocol(m: Module, port: Any, name: str) -> None:
    """Asserts that a stream which waits does not change its mind."""
    waited = Signal(name=f"{name}_waited")
    payload = Signal.like(Value.cast(port.payload), name=f"{name}_payload")
    m.d.sync += [waited.eq(port.valid & ~port.ready), payload.eq(Value.cast(port.payload))]
    with m.If(waited):
        m.d.comb += [
            Assert(port.valid, f"{name} withdraws an offer"),
            Assert(Value.cast(port.payload) == payload, f"{name} changes an offer"),
        ]


class ReceiverKeepsProtocol(wiring.Component):
    """The receiver's two outputs, as long as the session stays."""

    i: stream.Interface
    session: Signal
    requests: stream.Interface
    payload: stream.Interface

    def __init__(self) -> None:
        super().__init__(_RECEIVER_PORTS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = _receiver()
        _connect(m, self, receiver)
        session = Signal(32)
        m.d.sync += session.eq(self.session)
        m.d.comb += Assume(self.session == session, "the session stays")
        keeps_protocol(m, self.requests, "requests")
        keeps_protocol(m, self.payload, "payload")
        return m


class TransmitterKeepsProtocol(wiring.Component):
    """The transmitter's bytes."""

    session: Signal
    responses: stream.Interface
    payload: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "session": In(32),
                "responses": In(stream.Signature(Response)),
                "payload": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = FrameTransmitter()
        m.d.comb += transmitter.session.eq(self.session)
        connect(m, flipped(self.responses), transmitter.responses)
        connect(m, flipped(self.payload), transmitter.payload)
        connect(m, transmitter.o, flipped(self.o))
        keeps_protocol(m, self.o, "o")
        return m


class GoodOnlyIfSound(wiring.Component):
    """A request's verdict is BAD_CRC exactly if the frame's checksum is wrong in the session.

    The frame is what came since the receiver last was ``hunting``; the checksum is computed here,
    bit by bit, from the bytes that the receiver took. ``checksum`` is the receiver's own.
    """

    i: stream.Interface
    session: Signal
    requests: stream.Interface
    payload: stream.Interface
    hunting: Signal
    checksum: Signal

    def __init__(self) -> None:
        super().__init__({**_RECEIVER_PORTS, "hunting": In(1), "checksum": In(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = _receiver()
        _connect(m, self, receiver)
        register = Signal(32)
        taken = self.i.valid & self.i.ready
        with m.If(self.hunting):
            m.d.sync += register.eq(_ONES)
        with m.Elif(taken):
            m.d.sync += register.eq(crc32_step(register, self.i.payload))
        session, left = Signal(32), Signal(32)
        m.d.sync += [session.eq(self.session), left.eq(register)]
        free = self.requests.p.header.command.code.matches(Command.IDENTIFY, Command.OPEN)
        # the register is the CRC's complement
        sound = left == _RESIDUE ^ Mux(free, 0, session)
        started = Signal()
        m.d.sync += started.eq(1)
        m.d.comb += Assert(~started | (self.checksum == ~register), "another checksum")
        with m.If(self.requests.valid):
            verdict = self.requests.p.verdict
            m.d.comb += Assert((verdict != Status.BAD_CRC) == sound, "the verdict is wrong")
        return m


def crc32_step(register: Value, byte: Value) -> Value:
    """Ethernet's CRC-32, a byte further, a bit at a time."""
    bits = list(register)
    for bit in byte:
        feedback = bits[0] ^ bit
        shifted = [*bits[1:], Const(0, 1)]
        bits = [
            value ^ feedback if _POLYNOMIAL >> k & 1 else value for k, value in enumerate(shifted)
        ]
    return Cat(bits)


PROOFS = (
    Proof(name="frame_receiver_streams", component=ReceiverKeepsProtocol, depth=2),
    Proof(name="frame_transmitter_streams", component=TransmitterKeepsProtocol, depth=2),
    Proof(
        name="frame_receiver_crc",
        component=GoodOnlyIfSound,
        depth=2,
        probes={"hunting": "receiver.scanner.hunting", "checksum": "receiver.crc"},
    ),
)

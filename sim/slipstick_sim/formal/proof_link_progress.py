"""The link never locks up: whatever came before, it goes on, and is ready for the next frame.

What is shown here holds after any history of bytes. The proofs look at all windows of some cycles
that begin in any state at all that the assertions allow, reachable or not; a shift register of what
was seen holds the window, so that nothing from before it counts.
"""

from amaranth.hdl import Assert, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.link.frame_receiver import FrameReceiver
from slipstick_rtl.link.layouts import FrameHeader, Request
from slipstick_rtl.link.protocol import CRC_BYTES, HEADER_BYTES

from .registry import Proof

PAYLOAD_BYTES = 2
TIMEOUT_CYCLES = 3
SILENCE_CYCLES = TIMEOUT_CYCLES + 2 * PAYLOAD_BYTES + 5
"""In which half a frame is forgotten, once the payloads before it are taken."""
STALL_CYCLES = 9
"""For which the receiver makes a byte wait at most, as long as what it gives is taken at once."""


def always_within(m: Module, condition: Value, cycles: int, message: str, name: str) -> None:
    """Asserts that the condition is not false for so many cycles in a row."""
    missed = Signal(cycles, name=f"{name}_missed")
    window = Cat(~condition, missed)
    m.d.sync += missed.eq(window)
    m.d.comb += Assert(~window.all(), message)


_FLAGS = ("hunting", "inside", "complete", "storing", "last", "payload_last")
"""Names of the scanner's flags."""


class ReceiverGoesOn(wiring.Component):
    """The receiver, whose requests and payload are taken at once, under any bytes.

    Every byte that is taken brings a frame that has begun nearer to its end, which is 65,544 bytes
    away at most. The ports below ``payload`` are signals of the receiver.
    """

    i: stream.Interface
    session: Signal
    requests: stream.Interface
    payload: stream.Interface
    state: Signal
    hunting: Signal
    inside: Signal
    complete: Signal
    storing: Signal
    last: Signal
    payload_last: Signal
    too_long: Signal
    header: data.View
    remaining: Signal
    written: Signal
    committed: Signal
    read: Signal

    def __init__(self) -> None:
        pointer = In((2 * PAYLOAD_BYTES).bit_length())
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "session": In(32),
                "requests": Out(stream.Signature(Request)),
                "payload": Out(stream.Signature(8)),
                **dict.fromkeys(_FLAGS, In(1)),
                "state": In(2),
                "too_long": In(1),
                "header": In(FrameHeader),
                "remaining": In(17),
                **dict.fromkeys(("written", "committed", "read"), pointer),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(
            payload_bytes=PAYLOAD_BYTES, timeout_cycles=TIMEOUT_CYCLES
        )
        connect(m, flipped(self.i), receiver.i)
        connect(m, receiver.requests, flipped(self.requests))
        connect(m, receiver.payload, flipped(self.payload))
        m.d.comb += receiver.session.eq(self.session)
        self._follow(m)
        taken = self.requests.ready & self.payload.ready
        silent = ~self.i.valid & taken
        always_within(
            m,
            ~silent | self.hunting,
            SILENCE_CYCLES,
            "silence does not make it forget",
            "silence",
        )
        always_within(
            m,
            ~(self.i.valid & taken) | self.i.ready,
            STALL_CYCLES,
            "a byte is not taken",
            "stall",
        )
        return m

    def _follow(self, m: Module) -> None:
        """The grammar, counted apart: each byte taken brings a frame nearer to its end."""
        bits = len(self.written)
        stored = (self.written - self.committed)[:bits]
        released = (self.committed - self.read)[:bits]
        pending = self.inside & self.storing
        data_left = self.remaining - CRC_BYTES
        m.d.comb += [
            Assert(self.hunting + self.inside + self.complete == 1, "it is in no state"),
            Assert(
                (self.state != _TAKE_THE_HEADER) | (self.remaining < HEADER_BYTES) & ~self.storing,
                "a header of another length",
            ),
            Assert(~self.inside | (self.remaining != 0), "a frame without an end"),
            Assert(
                ~self.inside | (self.remaining <= CRC_BYTES + 0xFFFF), "a frame that is too long"
            ),
            Assert(~(self.complete & self.storing), "bytes behind the end are stored"),
            Assert(~self.inside | (self.last == (self.remaining == 1)), "another end"),
            Assert(
                ~pending | (self.payload_last == (self.remaining == CRC_BYTES + 1)),
                "another end of the payload",
            ),
            Assert(stored <= PAYLOAD_BYTES, "more is stored than a payload"),
            Assert(stored + released <= 2 * PAYLOAD_BYTES, "the ring overflows"),
            Assert(~pending | (self.header.length <= PAYLOAD_BYTES), "what is too long is stored"),
            Assert(~pending | (data_left + stored == self.header.length), "payload bytes are lost"),
            Assert(~pending | (self.remaining > CRC_BYTES), "the checksum is taken for payload"),
        ]


_TAKE_THE_HEADER = 1
"""Number of the scanner's state that takes the header."""

_SCANNER = "receiver.scanner"
_RING = "receiver.ring"

RECEIVER = Proof(
    name="frame_receiver_goes_on",
    component=ReceiverGoesOn,
    depth=max(SILENCE_CYCLES, STALL_CYCLES) + 2,
    probes={
        **{name: f"{_SCANNER}.{name}" for name in (*_FLAGS, "too_long", "header")},
        "remaining": f"{_SCANNER}.remaining",
        "state": f"{_SCANNER}.fsm_state",
        **{name: f"{_RING}.{name}" for name in ("written", "committed", "read")},
    },
)

PROOFS = (RECEIVER,)

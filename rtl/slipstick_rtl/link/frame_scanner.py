"""The grammar of a request frame: which byte of a stream is what."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import FrameHeader
from .protocol import CRC_BYTES, HEADER_BYTES, REQUEST_START

HEADER_BODY_BYTES = HEADER_BYTES - 1
"""Header bytes that the CRC covers: all but the start byte."""


class FrameScanner(wiring.Component):
    """Follows the bytes of a frame, one a cycle, and holds at its end until released.

    Parameters
    ----------
    payload_bytes : int
        Longest payload; a longer one is followed, not stored.

    Members
    -------
    i : In(stream of bytes)
    full : In
        No payload byte can be stored: wait with it.
    forget : In
        Drops what was received of a frame and hunts for the next start byte.
    release : In
        Ends ``complete``.
    hunting, inside, complete : Out
        Between frames; within one; at the end of one, whose ``header`` and ``too_long`` then hold.
    covered : Out
        The byte taken in this cycle counts in the CRC.
    stored : Out
        The byte taken in this cycle belongs to a payload that fits.
    """

    i: stream.Interface
    full: Signal
    forget: Signal
    release: Signal
    hunting: Signal
    inside: Signal
    complete: Signal
    header: data.View
    too_long: Signal
    covered: Signal
    stored: Signal

    def __init__(self, *, payload_bytes: int) -> None:
        self._payload_bytes = payload_bytes
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "full": In(1),
                "forget": In(1),
                "release": In(1),
                "hunting": Out(1),
                "inside": Out(1),
                "complete": Out(1),
                "header": Out(FrameHeader),
                "too_long": Out(1),
                "covered": Out(1),
                "stored": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        remaining = Signal(17)  # bytes to the end, once the header is in
        storing = Signal()  # within a payload that fits
        # of the header or of the frame, of the payload; registers, as much hangs on them
        last = Signal()
        payload_last = Signal()
        blocked = self.forget | storing & self.full
        taken = self.i.valid & self.i.ready

        m.d.comb += [
            self.inside.eq(~self.hunting & ~self.complete),
            self.i.ready.eq(self.hunting | self.inside & ~blocked),
            self.covered.eq(taken & self.inside),
            self.stored.eq(self.i.valid & storing & ~blocked),
        ]
        with m.If(taken):
            m.d.sync += [
                remaining.eq(remaining - 1),
                last.eq(remaining == 2),
                payload_last.eq(remaining == CRC_BYTES + 2),
            ]

        with m.FSM():
            with m.State("hunt for the start"):
                m.d.comb += self.hunting.eq(1)
                m.d.sync += [remaining.eq(HEADER_BODY_BYTES), last.eq(0), storing.eq(0)]
                with m.If(taken & (self.i.payload == REQUEST_START)):
                    m.next = "take the header"
            with m.State("take the header"):
                self._take_header(m, taken, (remaining, last, payload_last), storing)
            with m.State("take the rest"):
                with m.If(taken & payload_last):
                    m.d.sync += storing.eq(0)
                with m.If(taken & last):
                    m.next = "hold"
                with m.If(self.forget):
                    m.next = "hunt for the start"
            with m.State("hold"):
                m.d.comb += self.complete.eq(1)
                with m.If(self.release):
                    m.next = "hunt for the start"
        return m

    def _take_header(
        self, m: Module, taken: Value, count: tuple[Signal, Signal, Signal], storing: Signal
    ) -> None:
        """The header's state: its last byte completes the length of what follows."""
        header = self.header.as_value()
        remaining, last, payload_last = count
        length = Cat(header[-8:], self.i.payload)
        with m.If(taken):
            m.d.sync += header.eq(Cat(header[8:], self.i.payload))
        with m.If(taken & last):
            m.d.sync += [
                remaining.eq(length + CRC_BYTES),
                last.eq(0),
                payload_last.eq(length == 1),
                storing.eq((length != 0) & (length <= self._payload_bytes)),
                self.too_long.eq(length > self._payload_bytes),
            ]
            m.next = "take the rest"
        with m.If(self.forget):
            m.next = "hunt for the start"

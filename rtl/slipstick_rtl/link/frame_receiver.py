"""Makes requests of bytes: finds frames, buffers their payload, checks their CRC."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out, connect, flipped

from .frame_scanner import FrameScanner
from .layouts import Request
from .payload_ring import PayloadRing
from .protocol import CRC_BYTES, RESIDUE, UNSEALED, Status


class FrameReceiver(wiring.Component):
    """Receives requests, one byte a cycle, into a ring of nearly two maximal payloads.

    While the ring releases one frame's payload the next is received, up to its end; a third waits
    in the byte stream. A frame costs two cycles besides its bytes. A frame that claims more than
    ``payload_bytes`` is followed to its end but not stored. A frame whose next byte does not come
    for ``timeout_cycles`` is forgotten; cycles in which ``i`` is not ready do not count.

    Parameters
    ----------
    payload_bytes : int
        Longest payload, a power of two of at least 2.
    timeout_cycles : int
        At least 1.

    Members
    -------
    i : In(stream of bytes)
    session : In
        What requests are sealed with, unless they are ``UNSEALED``.
    requests : Out(stream of Request)
        One for each frame that came whole: BAD_CRC before BAD_LENGTH (too long) before OK. The
        verdict is that of the session in the cycle before the request is taken.
    payload : Out(stream of bytes)
        The payloads of the requests that are OK, back to back.

    Raises
    ------
    ValueError
        If a parameter breaks its rule.
    """

    i: stream.Interface
    session: Signal
    requests: stream.Interface
    payload: stream.Interface

    def __init__(self, *, payload_bytes: int, timeout_cycles: int) -> None:
        if payload_bytes < 2 or payload_bytes & (payload_bytes - 1):
            raise ValueError(
                f"payload_bytes must be a power of two of at least 2, not {payload_bytes}"
            )
        if timeout_cycles < 1:
            raise ValueError(f"timeout_cycles must be at least 1, not {timeout_cycles}")
        self._payload_bytes = payload_bytes
        self._timeout_cycles = timeout_cycles
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "session": In(8 * CRC_BYTES),
                "requests": Out(stream.Signature(Request)),
                "payload": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        crc: Any = CRC32_ETHERNET(data_width=8).create()
        m.submodules.crc = crc
        m.submodules.ring = ring = PayloadRing(depth=2 * self._payload_bytes)
        m.submodules.scanner = scanner = FrameScanner(payload_bytes=self._payload_bytes)
        connect(m, flipped(self.i), scanner.i)
        connect(m, ring.o, flipped(self.payload))

        # one cycle behind the checksum's last byte
        unsealed, sealed, settled = Signal(), Signal(), Signal()
        free = scanner.header.command.code.matches(*UNSEALED)
        sound = Mux(free, unsealed, sealed)
        hand_over = self.requests.valid & self.requests.ready
        good = sound & ~scanner.too_long

        m.d.comb += [
            crc.start.eq(scanner.hunting),
            crc.data.eq(self.i.payload),
            crc.valid.eq(scanner.covered),
            ring.data.eq(self.i.payload),
            ring.write.eq(scanner.stored),
            ring.commit.eq(hand_over & good),
            ring.revert.eq(scanner.hunting),  # no-op after a commit
            scanner.full.eq(ring.full),
            scanner.release.eq(hand_over),
            self.requests.valid.eq(scanner.complete & settled),
            self.requests.p.header.eq(scanner.header),
            self.requests.p.verdict.eq(
                Mux(sound, Mux(scanner.too_long, Status.BAD_LENGTH, Status.OK), Status.BAD_CRC)
            ),
        ]
        m.d.sync += [
            settled.eq(scanner.complete & ~hand_over),
            unsealed.eq(crc.match_detected),
            sealed.eq(crc.crc == self.session ^ RESIDUE),
        ]
        self._forget_what_stops(m, scanner)
        return m

    def _forget_what_stops(self, m: Module, scanner: FrameScanner) -> None:
        """Forgets a frame after too many cycles in which its next byte could come, and does not."""
        idle = Signal(range(self._timeout_cycles + 1))
        expired = idle == self._timeout_cycles
        waiting = scanner.inside & scanner.i.ready & ~self.i.valid
        m.d.sync += [
            idle.eq(Mux(waiting & ~expired, idle + 1, 0)),
            scanner.forget.eq(expired),
        ]

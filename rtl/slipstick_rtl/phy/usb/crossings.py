"""Carries bytes between the core's clock and the clock of USB, and ends packets."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from .packet_end import MARKED_BYTE, PacketEnd

CROSSING_BYTES = 16
"""Room in each crossing of domains; the packets wait in the endpoints."""


class Crossings(wiring.Component):
    """Two queues with Gray-coded pointers, one in each direction; a byte per cycle of ``usb``.

    Parameters
    ----------
    quiet_cycles : int
        As of ``PacketEnd``.

    Members
    -------
    i, o : In(stream), Out(stream)
        Bytes to and from the host, in ``sync``.
    received : In(stream)
        Bytes from the host, in ``usb``.
    sent : Out(stream of MARKED_BYTE)
        Bytes to the host, in ``usb``.
    """

    i: stream.Interface
    o: stream.Interface
    received: stream.Interface
    sent: stream.Interface

    def __init__(self, *, quiet_cycles: int) -> None:
        self._quiet_cycles = quiet_cycles
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "received": In(stream.Signature(8)),
                "sent": Out(stream.Signature(MARKED_BYTE)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inward: Any = AsyncFIFOBuffered(
            width=8, depth=CROSSING_BYTES + 1, w_domain="usb", r_domain="sync"
        )
        outward: Any = AsyncFIFOBuffered(
            width=8, depth=CROSSING_BYTES + 1, w_domain="sync", r_domain="usb"
        )
        m.submodules.inward, m.submodules.outward = inward, outward
        m.submodules.packet_end = packet_end = PacketEnd(quiet_cycles=self._quiet_cycles)
        connect(m, flipped(self.received), inward.w_stream)
        connect(m, inward.r_stream, flipped(self.o))
        connect(m, flipped(self.i), outward.w_stream)
        connect(m, outward.r_stream, packet_end.i)
        connect(m, packet_end.o, flipped(self.sent))
        return m


def join_endpoints(crossings: Crossings, incoming: Any, outgoing: Any) -> list[Any]:
    """Statements that join the queues to the streams of luna's endpoints, both in ``usb``."""
    received, sent = crossings.received, crossings.sent
    return [
        received.payload.eq(incoming.payload),
        received.valid.eq(incoming.valid),
        incoming.ready.eq(received.ready),
        outgoing.payload.eq(sent.payload.data),
        outgoing.last.eq(sent.payload.last),
        outgoing.valid.eq(sent.valid),
        sent.ready.eq(outgoing.ready),
    ]

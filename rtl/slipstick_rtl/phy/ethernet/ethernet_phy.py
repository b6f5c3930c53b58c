"""The PHY of an Ethernet wire: bytes of the link in UDP packets."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import connect, flipped

from ..interface import STREAMS
from .liteeth_port import LiteEthPort


class EthernetPhy(wiring.Component):
    """Joins LiteEth to the datagrams' protocol.

    Domains: ``sync``, and ``ethernet`` of 50 MHz.

    Parameters
    ----------
    liteeth : LiteEthPort
    port : EthernetPort
        With byte streams ``i`` and ``o``, and ``received`` and ``sent`` as of ``LiteEthPort``.

    Members
    -------
    i, o : In(stream), Out(stream)
        Bytes to and from the owner.
    each pin
        As of ``LiteEthPort``.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, *, liteeth: LiteEthPort, port: Any) -> None:
        self.liteeth, self.port = liteeth, port
        self._pins = {
            name: member
            for name, member in liteeth.signature.members.items()
            if name not in ("received", "sent")
        }
        super().__init__({**STREAMS.members, **self._pins})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.liteeth = liteeth = self.liteeth
        m.submodules.port = port = self.port
        connect(m, liteeth.received, port.received)
        connect(m, port.sent, liteeth.sent)
        connect(m, flipped(self.i), port.i)
        connect(m, port.o, flipped(self.o))
        for name, member in self._pins.items():
            pin, own = getattr(liteeth, name), getattr(self, name)
            m.d.comb += own.eq(pin) if member.flow is wiring.Out else pin.eq(own)
        return m

"""Ends packets: bytes that have no successor for a while are the last of theirs."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

QUIET_CYCLES = 32
"""2.7 us of the 12 MHz clock, in which full speed passes four bytes: longer than any rest in the
link's answers, short beside a frame of 1 ms."""

MARKED_BYTE = StructLayout({"data": 8, "last": 1})


class PacketEnd(wiring.Component):
    """Holds back one byte until it is known whether another one follows.

    With ``last`` the endpoint sends what it has, and an empty packet if the one before was full: so
    nothing waits for more bytes, and the host's transfer ends (USB 2.0, 5.8.3). Without pause
    between the bytes, packets are full. A byte a cycle of ``usb``.

    Parameters
    ----------
    quiet_cycles : int
        Cycles of ``usb`` without a successor, after which a byte is the last one.

    Members
    -------
    i : In(stream of bytes)
    o : Out(stream of MARKED_BYTE)
        ``last`` if ``quiet_cycles`` passed without a successor. It stays, once it was given.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, *, quiet_cycles: int = QUIET_CYCLES) -> None:
        self._quiet_cycles = quiet_cycles
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(MARKED_BYTE))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held, last = Signal(), Signal()
        data = Signal(8)
        quiet = Signal(range(self._quiet_cycles))
        leaves = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.payload.data.eq(data),
            self.o.payload.last.eq(last),
            self.o.valid.eq(held & (self.i.valid | last)),
            self.i.ready.eq(~held | leaves),
        ]
        with m.If(self.i.ready):
            m.d.usb += [held.eq(self.i.valid), data.eq(self.i.payload), last.eq(0), quiet.eq(0)]
        with m.Elif(~self.i.valid):
            m.d.usb += quiet.eq(quiet + 1)
            with m.If(quiet == self._quiet_cycles - 1):
                m.d.usb += last.eq(1)
        return m

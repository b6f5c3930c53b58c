"""CRC-32 a bit a cycle, for chips on which a byte a cycle takes too many look-up tables."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..protocol import CRC_BYTES, RESIDUE

POLYNOMIAL = 0xEDB88320
"""Ethernet's, lowest power in the top bit."""

_BITS = 8 * CRC_BYTES


class SerialCrc(wiring.Component):
    """Ethernet's CRC-32 with the ports of :class:`amaranth.lib.crc.Processor`, and ``busy``.

    Members
    -------
    start : In
        A new checksum begins, without a byte.
    data, valid : In
        A byte to be counted; not while ``busy``.
    shift : In
        Holds for bytes that are not counted: the checksum moves down by a byte instead.
    busy : Out
        For eight cycles from the one after ``valid`` on: the checksum is not there yet.
    crc : Out(32)
    match_detected : Out
        The last four bytes were the checksum of those before them.
    """

    start: Signal
    data: Signal
    valid: Signal
    shift: Signal
    busy: Signal
    crc: Signal
    match_detected: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "data": In(8),
                "valid": In(1),
                "shift": In(1),
                "busy": Out(1),
                "crc": Out(_BITS),
                "match_detected": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        remainder = Signal(_BITS, init=(1 << _BITS) - 1)
        # the bits to come, and above them a one that marks the end
        bits = Signal(9, init=1)
        odd = (remainder[0] ^ bits[0]) & ~self.shift
        m.d.comb += [
            self.busy.eq(bits[1:].any()),
            self.crc.eq(~remainder),
            self.match_detected.eq(self.crc == RESIDUE),
        ]
        with m.If(self.valid):
            m.d.sync += bits.eq(Cat(self.data, 1))
        with m.Elif(self.busy):
            m.d.sync += bits.eq(bits >> 1)
        with m.If(self.start):
            m.d.sync += remainder.eq(Const(-1, _BITS))
        with m.Elif(self.busy):
            m.d.sync += remainder.eq((remainder >> 1) ^ Mux(odd, POLYNOMIAL, 0))
        return m

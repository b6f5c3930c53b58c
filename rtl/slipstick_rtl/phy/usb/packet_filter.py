"""Hides packets that do not belong to this device from luna's device logic."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

_HANDSHAKE, _DATA = 0b10, 0b11  # the low bits of a packet identifier
_NO_PACKET = 0x00  # an identifier that breaks the rule of its check bits, so that no one takes it


class PacketFilter(wiring.Component):
    """Makes the identifier of a packet invalid unless the packet belongs here.

    A device on a hub hears what the host says to any of them. luna's device takes every ACK for its
    own, and every data packet for the one that its last token announced. So a packet counts only
    where it belongs: a handshake right after something was sent, data right after a token to this
    device. luna ignores the rest of a packet whose identifier is invalid.

    Parameters
    ----------
    data_cycles, handshake_cycles : int
        Cycles of ``usb`` in which data must begin after a token, and a handshake after the end of
        ``tx_valid``.

    Members
    -------
    new_token : In
        Strobe: the packet that just ended was a token to this device.
    tx_valid : In
        Of UTMI: the device sends.
    rx_data, rx_valid, rx_active : In
        Of UTMI: what the transceiver hears.
    o : Out(8)
        ``rx_data``, or an invalid identifier in its place; no cycle later.
    """

    new_token: Signal
    tx_valid: Signal
    rx_data: Signal
    rx_valid: Signal
    rx_active: Signal
    o: Signal

    def __init__(self, *, data_cycles: int, handshake_cycles: int) -> None:
        self._data_cycles, self._handshake_cycles = data_cycles, handshake_cycles
        super().__init__(
            {
                "new_token": In(1),
                "tx_valid": In(1),
                "rx_data": In(8),
                "rx_valid": In(1),
                "rx_active": In(1),
                "o": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        receiving, identifier, belongs = Signal(), Signal(init=1), Signal()
        m.d.usb += receiving.eq(self.rx_active)
        ended = receiving & ~self.rx_active
        sent = self._patience(m, self._handshake_cycles, self.tx_valid, ended)
        # the strobe comes after the end of the token
        addressed = self._patience(m, self._data_cycles, self.new_token, ended)
        with m.If(~self.rx_active):
            m.d.usb += identifier.eq(1)
        with m.Elif(self.rx_valid):
            m.d.usb += identifier.eq(0)
        m.d.comb += [belongs.eq(1), self.o.eq(Mux(belongs, self.rx_data, _NO_PACKET))]
        with m.If(identifier), m.Switch(self.rx_data[:2]):
            with m.Case(_HANDSHAKE):
                m.d.comb += belongs.eq(sent != 0)
            with m.Case(_DATA):
                m.d.comb += belongs.eq(addressed != 0)
        return m

    def _patience(self, m: Module, cycles: int, begin: Value, end: Value) -> Signal:
        """Counts down to zero from ``begin`` on; a packet stops it, its ``end`` makes it zero."""
        left = Signal(range(cycles + 1))
        with m.If(begin):
            m.d.usb += left.eq(cycles)
        with m.Elif(end):
            m.d.usb += left.eq(0)
        with m.Elif(~self.rx_active & (left != 0)):
            m.d.usb += left.eq(left - 1)
        return left

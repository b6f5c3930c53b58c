"""The pins: luna's full-speed transceiver, and what its device logic must not be told."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from .luna import part
from .packet_filter import PacketFilter

PIN = io.Buffer.Signature(io.Direction.Bidir, 1)
"""A pin that goes both ways, as ``amaranth.lib.io.Buffer`` has it."""

RESPONSE_BITS = 18
"""After so long a silence the other end has not heard (USB 2.0, 7.1.19)."""

SYNC_BITS, PIPELINE_BITS = 8, 6
"""Before a packet shows: its first bits, and luna's way from the pins."""

DATA_CYCLES = RESPONSE_BITS + SYNC_BITS + PIPELINE_BITS
HANDSHAKE_CYCLES = 10 + 3 + PIPELINE_BITS + DATA_CYCLES
"""The last byte, perhaps with stuffed bits, and the end of a packet leave after ``tx_valid``."""


class Transceiver(wiring.Component):
    """Bits on two wires to bytes of packets, by the UTMI interface, and back.

    luna's ``GatewarePHY`` finds the bits; ``PacketFilter`` hides what is said to other devices.

    luna reads the line state from the pins as they are, and takes J for K. Here it passes a
    synchroniser and has the order of UTMI.

    Domains: ``usb_io`` of 48 MHz and ``usb`` of 12 MHz.

    Members
    -------
    d_plus, d_minus : Out
        Pins. luna would take a bus with a ``d_n`` for bare pins.
    pullup : Out
        Drive high to connect D+ through its pull-up resistor: the device is there.
    new_token : In
        Strobe: the packet that just ended was a token to this device.
    rx_data, rx_valid, rx_active : Out
        Bytes of a packet; ``rx_active`` from the packet's first bit to its end.
    tx_data, tx_valid, tx_ready : In, In, Out
        Bytes to send; the packet ends when ``tx_valid`` falls.
    line_state : Out(2)
        0 for SE0, 1 for J, 2 for K.
    session_end : Out
        Always 0: the boards give no VBUS to look at.
    op_mode, xcvr_select, term_select, dp_pulldown, dm_pulldown : In
        UTMI's controls; only ``op_mode`` and ``term_select`` matter here.
    """

    d_plus: wiring.PureInterface
    d_minus: wiring.PureInterface
    pullup: Signal
    new_token: Signal
    rx_data: Signal
    rx_valid: Signal
    rx_active: Signal
    tx_data: Signal
    tx_valid: Signal
    tx_ready: Signal
    line_state: Signal
    session_end: Signal
    op_mode: Signal
    xcvr_select: Signal
    term_select: Signal
    dp_pulldown: Signal
    dm_pulldown: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "d_plus": Out(PIN),
                "d_minus": Out(PIN),
                "pullup": Out(1),
                "new_token": In(1),
                "rx_data": Out(8),
                "rx_valid": Out(1),
                "rx_active": Out(1),
                "tx_data": In(8),
                "tx_valid": In(1),
                "tx_ready": Out(1),
                "line_state": Out(2),
                "session_end": Out(1),
                "op_mode": In(2),
                "xcvr_select": In(2),
                "term_select": In(1),
                "dp_pulldown": In(1),
                "dm_pulldown": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pullup = SimpleNamespace(o=self.pullup)
        pins: Any = SimpleNamespace(d_p=self.d_plus, d_n=self.d_minus, pullup=pullup)
        m.submodules.phy = phy = part("GatewarePHY")(io=pins)
        m.submodules.line = FFSynchronizer(
            Cat(pins.d_p.i, pins.d_n.i), self.line_state, o_domain="usb"
        )
        m.d.comb += [
            self.rx_valid.eq(phy.rx_valid),
            self.rx_active.eq(phy.rx_active),
            phy.tx_data.eq(self.tx_data),
            phy.tx_valid.eq(self.tx_valid),
            self.tx_ready.eq(phy.tx_ready),
            phy.op_mode.eq(self.op_mode),
            phy.term_select.eq(self.term_select),
        ]
        packets = PacketFilter(data_cycles=DATA_CYCLES, handshake_cycles=HANDSHAKE_CYCLES)
        m.submodules.packets = packets
        m.d.comb += [
            packets.new_token.eq(self.new_token),
            packets.tx_valid.eq(self.tx_valid),
            packets.rx_data.eq(phy.rx_data),
            packets.rx_valid.eq(phy.rx_valid),
            packets.rx_active.eq(phy.rx_active),
            self.rx_data.eq(packets.o),
        ]
        return m

"""The pins of a ULPI chip: luna's translator, and what its device logic must not be told."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from .luna import part
from .packet_filter import PacketFilter
from .transmit_buffer import TransmitBuffer

ULPI_DATA = io.Buffer.Signature(io.Direction.Bidir, 8)
"""Eight pins that go both ways, as ``amaranth.lib.io.Buffer`` has them."""

STARTUP_CYCLES = 60_000
"""1 ms of the 60 MHz clock, in which the chip begins to work."""

NORMAL = 0
"""UTMI's mode of operation, in which the chip stuffs bits."""

STATUS_ACTIVE = 4
"""The bit of a status byte that says that a packet comes."""

PATIENCE_CYCLES = 320
"""5.3 us of the 60 MHz clock: longer than any answer takes. High speed gives up after 816 bits (102
cycles), full speed after 18 (90), each beside the way through the chip and the last bits sent. A
packet that ends before ends the wait, so a longer one does no harm."""


class UlpiTransceiver(wiring.Component):
    """Bytes of a ULPI chip to packets, by the UTMI interface, and back.

    luna's ``UTMITranslator`` speaks with the chip; ``PacketFilter`` hides what is said to other
    devices. The domain is ``usb``, of 60 MHz.

    luna takes a packet that DIR alone ends for one that goes on, if a status byte says that the
    next one begins, and does not hear that one. Here DIR, NXT and the status bytes are read anew,
    as ULPI 1.1 (3.8.2.4) has them.

    Parameters
    ----------
    startup_cycles : int
        Cycles of ``usb`` after its reset in which the chip is left alone.

    Members
    -------
    data : Out
        Pins.
    direction, nxt, stp : In, In, Out
        Pins. luna would take a bus with a ``dir`` for bare pins.
    busy : Out
        The chip is written to, sends or hears.
    new_token : In
        Strobe: the packet that just ended was a token to this device.
    rx_data, rx_valid, rx_active : Out
        Bytes of a packet; ``rx_active`` from the packet's first bit to its end.
    tx_data, tx_valid, tx_ready : In, In, Out
        Bytes to send; the packet ends when ``tx_valid`` falls.
    line_state : Out(2)
        0 for SE0 (at high speed: no one sends), 1 for J, 2 for K.
    session_end : Out
        Always 0: not every board connects VBUS to its chip.
    op_mode, xcvr_select, term_select, dp_pulldown, dm_pulldown : In
        UTMI's controls.
    """

    data: Any
    direction: Signal
    nxt: Signal
    stp: Signal
    busy: Signal
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

    def __init__(self, *, startup_cycles: int = STARTUP_CYCLES) -> None:
        self._startup_cycles = startup_cycles
        super().__init__(
            {
                "data": Out(ULPI_DATA),
                "direction": In(1),
                "nxt": In(1),
                "stp": Out(1),
                "busy": Out(1),
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
        pins = SimpleNamespace(
            data=self.data,
            dir=SimpleNamespace(i=self.direction),
            nxt=SimpleNamespace(i=self.nxt),
            stp=SimpleNamespace(o=self.stp),
            # luna waits for the chip if there is a reset; the port drives the pin itself
            rst=SimpleNamespace(o=Signal(name="unused_reset")),
        )
        translator = part("UTMITranslator")(
            ulpi=pins, use_platform_registers=False, handle_clocking=False
        )
        translator._CYCLES_1_MILLISECONDS = self._startup_cycles
        m.submodules.translator = translator
        m.submodules.sent = sent = TransmitBuffer()
        packets = PacketFilter(data_cycles=PATIENCE_CYCLES, handshake_cycles=PATIENCE_CYCLES)
        m.submodules.packets = packets
        m.d.comb += [
            self.busy.eq(translator.busy),
            packets.new_token.eq(self.new_token),
            packets.tx_valid.eq(sent.tx_valid),
            packets.rx_data.eq(self._receive(m)),
            packets.rx_valid.eq(self.rx_valid),
            packets.rx_active.eq(self.rx_active),
            self.rx_data.eq(packets.o),
            sent.data.eq(self.tx_data),
            sent.valid.eq(self.tx_valid),
            sent.keep.eq(self.op_mode == NORMAL),
            self.tx_ready.eq(sent.ready),
            translator.tx_data.eq(sent.tx_data),
            translator.tx_valid.eq(sent.tx_valid),
            sent.tx_ready.eq(translator.tx_ready),
            self.line_state.eq(translator.line_state),
        ]
        for name in ("op_mode", "xcvr_select", "term_select", "dp_pulldown", "dm_pulldown"):
            m.d.comb += getattr(translator, name).eq(getattr(self, name))
        return m

    def _receive(self, m: Module) -> Signal:
        """Drives ``rx_active`` and ``rx_valid``; returns the byte that belongs to them."""
        turned, byte = Signal(), Signal(8)
        m.d.usb += [
            turned.eq(self.direction),
            byte.eq(self.data.i),
            self.rx_valid.eq(self.direction & self.nxt & self.rx_active),
        ]
        with m.If(~self.direction):
            m.d.usb += self.rx_active.eq(0)
        with m.Elif(~turned):
            # in the cycle that turns the bus round, NXT says that a packet begins
            m.d.usb += self.rx_active.eq(self.nxt)
        with m.Elif(~self.nxt):
            m.d.usb += self.rx_active.eq(self.data.i[STATUS_ACTIVE])
        return byte

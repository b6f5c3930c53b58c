"""The USB device of high speed, behind a ULPI chip: bytes in bulk, as streams of another clock."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from .bulk_descriptors import CONTROL_PACKET_BYTES, bulk_descriptors
from .crossings import Crossings, join_endpoints
from .descriptors import UsbIdentity
from .high_speed import BULK_ENDPOINT, BULK_PACKET_BYTES
from .luna import part
from .requests import NoRequests, StandardRequests
from .restart import EndpointRestart
from .ulpi_transceiver import STARTUP_CYCLES, ULPI_DATA, UlpiTransceiver

QUIET_CYCLES = 160
"""2.7 us of the 60 MHz clock: longer than any rest in the link's answers, short beside a microframe
of 125 us."""

RECEIVED_BYTES = 2 * BULK_PACKET_BYTES - 1
"""Room for packets from the host: one is filled while another leaves, in one block RAM of an ECP5
(luna adds a byte)."""

_HIGH_SPEED = 0  # as UTMI selects the transceiver


class UsbHighSpeedPort(wiring.Component):
    """Bytes from and to a host, over a vendor-specific device with a bulk endpoint each way.

    A packet that finds no room is answered NAK, and the host asks with PING until there is some: no
    byte is lost while ``o`` waits. Only packets whose CRC is right go further. Bytes of ``i`` leave
    as full packets, and what is left over when ``i`` pauses for 2.7 us as a short one. A bus reset,
    a new configuration or a pause of the host drops no byte of either direction; a packet whose ACK
    the reset cut off is sent again.

    Domains: ``sync``, any clock; a local one, ``usb``, of ``clk``. The port resets it and the chip
    together, by ``rst``, for ``reset_cycles`` after the reset of ``sync``.

    Parameters
    ----------
    identity : UsbIdentity
    reset_cycles : int
        Cycles of ``sync``, at least 1. The chip lets go of the pull-up, so that a host that knew
        the device sees it leave.
    startup_cycles : int
        As of ``UlpiTransceiver``.

    Members
    -------
    i, o : In(stream), Out(stream)
        Bytes to and from the host, in ``sync``.
    data : Out
        Pins, for an ``amaranth.lib.io.Buffer("io", ...)``.
    clk : In
        60 MHz, the chip's.
    dir, nxt : In
        Pins.
    stp, rst : Out
        Pins; ``rst`` is high to reset the chip.
    configured : Out
        A host has enumerated the device; in ``sync``.
    high_speed : Out
        The host has agreed to high speed; in ``sync``.
    suspended : Out
        The bus sleeps; in ``sync``. Nothing is switched off for it.

    Raises
    ------
    ImportError
        If the package luna-usb is not installed.
    ValueError
        If ``reset_cycles`` is below 1.
    """

    i: stream.Interface
    o: stream.Interface
    data: wiring.PureInterface
    clk: Signal
    dir: Signal
    nxt: Signal
    stp: Signal
    rst: Signal
    configured: Signal
    high_speed: Signal
    suspended: Signal

    def __init__(
        self, *, identity: UsbIdentity, reset_cycles: int, startup_cycles: int = STARTUP_CYCLES
    ) -> None:
        if reset_cycles < 1:
            raise ValueError(f"reset_cycles must be at least 1, not {reset_cycles}")
        self._reset_cycles = reset_cycles
        self._startup_cycles = startup_cycles
        self.identity = identity
        self._descriptors = bulk_descriptors(identity)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "data": Out(ULPI_DATA),
                "clk": In(1),
                "dir": In(1),
                "nxt": In(1),
                "stp": Out(1),
                "rst": Out(1),
                "configured": Out(1),
                "high_speed": Out(1),
                "suspended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.usb = ClockDomain("usb", local=True)
        m.d.comb += ClockSignal("usb").eq(self.clk)
        self._reset(m)
        m.submodules.transceiver = transceiver = UlpiTransceiver(
            startup_cycles=self._startup_cycles
        )
        connect(m, transceiver.data, flipped(self.data))
        device, control, restart = self._device(m, transceiver)
        m.d.comb += [
            transceiver.direction.eq(self.dir),
            transceiver.nxt.eq(self.nxt),
            self.stp.eq(transceiver.stp),
            transceiver.new_token.eq(control.interface.tokenizer.new_token),
            device.connect.eq(1),
            restart.restart.eq(control.interface.config_changed | device.reset_detected),
        ]
        for state, output in (
            (control.interface.active_config != 0, self.configured),
            (device.speed == _HIGH_SPEED, self.high_speed),
            (device.suspended, self.suspended),
        ):
            held = Signal()
            m.d.usb += held.eq(state)
            m.submodules += FFSynchronizer(held, output)
        return m

    def _reset(self, m: Module) -> None:
        left = Signal(range(self._reset_cycles + 1), init=self._reset_cycles)
        holding = Signal(init=1)
        m.d.sync += holding.eq(left != 0)
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += self.rst.eq(holding)
        # asserted without the clock, which a chip in reset may not give
        m.submodules.reset = ResetSynchronizer(holding, domain="usb")

    def _device(self, m: Module, transceiver: UlpiTransceiver) -> tuple[Any, Any, Any]:
        """luna's device with its endpoints, and the streams joined to the bulk ones."""
        device = part("USBDevice")(bus=transceiver)
        # luna knows high speed of its own translator alone
        device.always_fs, device.data_clock, device.bus_busy = False, 60e6, transceiver.busy
        control = part("USBControlEndpoint")(utmi=transceiver, max_packet_size=CONTROL_PACKET_BYTES)
        control.add_request_handler(StandardRequests(self._descriptors))
        control.add_request_handler(NoRequests())
        size = {"endpoint_number": BULK_ENDPOINT, "max_packet_size": BULK_PACKET_BYTES}
        incoming = part("USBStreamOutEndpoint")(**size, buffer_size=RECEIVED_BYTES)
        outgoing = part("USBStreamInEndpoint")(**size)
        restart = EndpointRestart(BULK_ENDPOINT)
        for endpoint in (control, incoming, outgoing, restart):
            device.add_endpoint(endpoint)
        m.submodules.device = device
        m.submodules.crossings = crossings = Crossings(quiet_cycles=QUIET_CYCLES)
        connect(m, flipped(self.i), crossings.i)
        connect(m, crossings.o, flipped(self.o))
        m.d.comb += join_endpoints(crossings, incoming.stream, outgoing.stream)
        return device, control, restart

"""The USB device: a serial port whose bytes are streams of another clock domain."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from .crossings import Crossings, join_endpoints
from .descriptors import DATA_ENDPOINT, PACKET_BYTES, UsbIdentity, serial_port_descriptors
from .luna import part
from .notifications import Notifications
from .packet_end import QUIET_CYCLES
from .requests import LineRequests, StandardRequests
from .restart import EndpointRestart
from .transceiver import PIN, Transceiver

ABSENT_CYCLES = 120_000
"""10 ms of the 12 MHz clock: no host takes that for noise (USB 2.0, 7.1.7.3)."""


class UsbSerialPort(wiring.Component):
    """Bytes from and to a host, over a full-speed device of class CDC-ACM.

    A packet that finds no room is answered NAK, and the host sends it again: no byte is lost while
    ``o`` waits. Bytes of ``i`` leave as full packets, and what is left over when ``i`` pauses for
    2.7 us as a short one. A bus reset, a new configuration or a pause of the host drops no byte of
    either direction; a packet whose ACK the reset cut off is sent again.

    Domains: ``sync``, any clock; ``usb_io`` of 48 MHz and ``usb`` of 12 MHz, both from one source,
    as exact as USB asks (0.25 %); their phase to each other does not matter.

    Parameters
    ----------
    identity : UsbIdentity
    absent_cycles : int
        Cycles of ``usb`` after its reset in which the pull-up is off, at least 1: a host that knew
        the device sees it leave, and asks anew what is there.

    Members
    -------
    i, o : In(stream), Out(stream)
        Bytes to and from the host, in ``sync``.
    d_p, d_n : Out
        Pins, each for an ``amaranth.lib.io.Buffer("io", ...)``.
    pullup : Out
        Drives D+ through its resistor, high to connect.
    configured : Out
        A host has enumerated the device; in ``sync``.
    suspended : Out
        The bus sleeps; in ``sync``. Nothing is switched off for it.

    Raises
    ------
    ImportError
        If the package luna-usb is not installed.
    ValueError
        If ``absent_cycles`` is below 1.
    """

    i: stream.Interface
    o: stream.Interface
    d_p: wiring.PureInterface
    d_n: wiring.PureInterface
    pullup: Signal
    configured: Signal
    suspended: Signal

    def __init__(self, *, identity: UsbIdentity, absent_cycles: int = ABSENT_CYCLES) -> None:
        if absent_cycles < 1:
            raise ValueError(f"absent_cycles must be at least 1, not {absent_cycles}")
        self._absent_cycles = absent_cycles
        self.identity = identity
        self._descriptors = serial_port_descriptors(identity)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "d_p": Out(PIN),
                "d_n": Out(PIN),
                "pullup": Out(1),
                "configured": Out(1),
                "suspended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transceiver = transceiver = Transceiver()
        connect(m, transceiver.d_plus, flipped(self.d_p))
        connect(m, transceiver.d_minus, flipped(self.d_n))
        m.d.comb += self.pullup.eq(transceiver.pullup)

        device = part("USBDevice")(bus=transceiver)
        control = part("USBControlEndpoint")(utmi=transceiver, max_packet_size=PACKET_BYTES)
        control.add_request_handler(StandardRequests(self._descriptors))
        control.add_request_handler(LineRequests())
        size = {"endpoint_number": DATA_ENDPOINT, "max_packet_size": PACKET_BYTES}
        incoming = part("USBStreamOutEndpoint")(**size)
        outgoing = part("USBStreamInEndpoint")(**size)
        restart = EndpointRestart(DATA_ENDPOINT)
        for endpoint in (control, incoming, outgoing, Notifications(), restart):
            device.add_endpoint(endpoint)
        m.submodules.device = device

        absent = Signal(range(self._absent_cycles + 1), init=self._absent_cycles)
        with m.If(absent != 0):
            m.d.usb += absent.eq(absent - 1)
        m.d.comb += [
            device.connect.eq(absent == 0),
            transceiver.new_token.eq(control.interface.tokenizer.new_token),
            restart.restart.eq(control.interface.config_changed | device.reset_detected),
        ]
        m.submodules.crossings = crossings = Crossings(quiet_cycles=QUIET_CYCLES)
        connect(m, flipped(self.i), crossings.i)
        connect(m, crossings.o, flipped(self.o))
        m.d.comb += join_endpoints(crossings, incoming.stream, outgoing.stream)
        self._show(m, control.interface.active_config != 0, self.configured)
        self._show(m, device.suspended, self.suspended)
        return m

    def _show(self, m: Module, condition: Any, output: Signal) -> None:
        """A state of the domain ``usb`` as an output of ``sync``."""
        state = Signal()
        m.d.usb += state.eq(condition)
        m.submodules += FFSynchronizer(state, output)

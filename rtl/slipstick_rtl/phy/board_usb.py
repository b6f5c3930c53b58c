"""USB as a board's physical layer: its pins, and the two clocks that it needs."""

from typing import Any

from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import connect, flipped

from ..config import Configuration
from ..fpga.ecp5.usb_clocks import Ecp5UsbClocks, UsbPll, find_usb_pll
from .board_phy import SIGNATURE, BoardLink, LinkMaker
from .usb.descriptors import UsbIdentity
from .usb.serial_port import UsbSerialPort


class UsbLink(wiring.Component):
    """A USB serial port on the pins of an ECP5 board, and a PLL for it.

    Parameters
    ----------
    identity : UsbIdentity
    pll : UsbPll
    resource : str
        The platform's, as ``DirectUSBResource`` of amaranth-boards makes it: ``d_p``, ``d_n`` and
        ``pullup``.

    Members
    -------
    i, o, fault, oscillator
        As of ``BoardLink``; there is never a fault.

    Raises
    ------
    ImportError
        If the package luna-usb is not installed.
    """

    i: stream.Interface
    o: stream.Interface
    fault: Signal
    oscillator: Signal

    def __init__(self, *, identity: UsbIdentity, pll: UsbPll, resource: str) -> None:
        self._port = UsbSerialPort(identity=identity)
        self._pll = pll
        self._resource = resource
        super().__init__(SIGNATURE)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains += [ClockDomain("usb_io"), ClockDomain("usb")]
        m.submodules.clocks = clocks = Ecp5UsbClocks(pll=self._pll)
        m.submodules.port = port = self._port
        m.d.comb += clocks.oscillator.eq(self.oscillator)
        connect(m, flipped(self.i), port.i)
        connect(m, port.o, flipped(self.o))
        pins = platform.request(self._resource, 0, dir="-")
        m.submodules.d_p = d_p = io.Buffer(io.Direction.Bidir, pins.d_p)
        m.submodules.d_n = d_n = io.Buffer(io.Direction.Bidir, pins.d_n)
        m.submodules.pullup = pullup = io.Buffer(io.Direction.Output, pins.pullup)
        connect(m, port.d_p, d_p)
        connect(m, port.d_n, d_n)
        m.d.comb += pullup.o.eq(port.pullup)
        return m


def usb(resource: str = "usb") -> LinkMaker:
    """A board's own USB port; the serial number is the configuration's fingerprint."""

    def make(configuration: Configuration, oscillator_hz: int) -> BoardLink:
        identity = UsbIdentity(serial_number=configuration.fingerprint)
        pll = find_usb_pll(oscillator_hz)
        return UsbLink(identity=identity, pll=pll, resource=resource)

    return make

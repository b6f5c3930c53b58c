"""The core behind a USB port of its own: for boards whose FPGA has the pins D+ and D-."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out, connect, flipped

from ..accelerator import EVENTS, Accelerator
from ..config import Configuration
from ..link.usb.descriptors import UsbIdentity
from ..link.usb.serial_port import UsbSerialPort
from ..link.usb.transceiver import PIN
from .lights import GLOW_SECONDS, Glow

PIN_CLOCK_HZ, PACKET_CLOCK_HZ = 48_000_000, 12_000_000
"""Clocks of the domains ``usb_io`` and ``usb``."""


class UsbAccelerator(wiring.Component):
    """The core, its link as a USB serial port on two pins.

    What a board has to give, beside what it gives to ``SerialAccelerator``:

    * three clock domains: ``sync`` of ``configuration.clock_hz``; ``usb_io`` of 48 MHz and ``usb``
      of 12 MHz, outputs of one PLL (their phase does not matter), within 0.25 % as USB demands.
      ``sync`` may have any ratio to them, so it may come of the same PLL if its VCO divides to all
      three (ECP5: 480 MHz / 10, / 40 and / 5 give 48, 12 and 96 MHz; 528 MHz / 11, / 44 and / 5
      give 105.6 MHz), or of a second one. Timing analysis needs no path between ``sync`` and the
      two: queues with Gray-coded pointers cross over, and two synchronised states.
    * a reset of ``usb`` and ``usb_io`` until the PLL has locked: the pull-up stays off until then
      only if the pin's buffer is held, which no host minds.
    * ``amaranth.lib.io.Buffer("io", pin)`` for either of ``platform.request("usb", dir="-")``'s
      ``d_p`` and ``d_n``, connected by ``connect(m, accelerator.d_p, buffer)``; an output buffer
      for ``pullup``. ``DirectUSBResource`` of amaranth-boards names these three.

    Parameters
    ----------
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``.
    identity : UsbIdentity, optional
        By default pid.codes' test number, with the fingerprint for a serial number: the port is
        ``/dev/serial/by-id/usb-Slipstick_CNN_accelerator_<fingerprint>-if00``.

    Members
    -------
    d_p, d_n : Out
        Pins.
    pullup : Out
        Connects the device.
    running : Out
        A program runs.
    configured, suspended : Out
        As of ``UsbSerialPort``.
    receiving, sending : Out
        A byte came or went within the last ``GLOW_SECONDS``.
    events : Out
        As of ``Accelerator``.

    Raises
    ------
    ImportError
        If the package luna-usb is not installed.
    """

    d_p: wiring.PureInterface
    d_n: wiring.PureInterface
    pullup: Signal
    running: Signal
    configured: Signal
    suspended: Signal
    receiving: Signal
    sending: Signal
    events: data.View

    def __init__(
        self, *, configuration: Configuration, identity: UsbIdentity | None = None
    ) -> None:
        self.accelerator = Accelerator(configuration=configuration)
        self.identity = identity or UsbIdentity(serial_number=configuration.fingerprint)
        self._port = UsbSerialPort(identity=self.identity)
        self._glow_cycles = max(1, round(configuration.clock_hz * GLOW_SECONDS))
        super().__init__(
            {
                "d_p": Out(PIN),
                "d_n": Out(PIN),
                "pullup": Out(1),
                "running": Out(1),
                "configured": Out(1),
                "suspended": Out(1),
                "receiving": Out(1),
                "sending": Out(1),
                "events": Out(EVENTS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules.port = port = self._port
        connect(m, port.o, core.i)
        connect(m, core.o, port.i)
        connect(m, port.d_p, flipped(self.d_p))
        connect(m, port.d_n, flipped(self.d_n))
        m.d.comb += [
            self.pullup.eq(port.pullup),
            self.running.eq(core.running),
            self.configured.eq(port.configured),
            self.suspended.eq(port.suspended),
            self.events.eq(core.events),
        ]
        shown = {
            "receiving": (port.o.valid, self.receiving),
            "sending": (port.i.valid, self.sending),
        }
        for name, (strobe, output) in shown.items():
            m.submodules[name] = glow = Glow(cycles=self._glow_cycles)
            m.d.comb += [glow.i.eq(strobe), output.eq(glow.o)]
        return m

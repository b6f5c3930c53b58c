"""The core behind a USB port of its own: for boards whose FPGA has the pins D+ and D-."""

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..accelerator import Accelerator
from ..config import Configuration
from .core_behind_phy import CoreBehindPhy
from .usb.descriptors import UsbIdentity
from .usb.serial_port import ABSENT_CYCLES, UsbSerialPort
from .usb.transceiver import PIN


class UsbAccelerator(CoreBehindPhy):
    """The core, its link as a USB serial port on two pins.

    What it needs, beside what ``SerialAccelerator`` needs (``UsbLink`` has it all for an ECP5):

    * two more clock domains, ``usb_io`` of 48 MHz and ``usb`` of 12 MHz from one PLL, within the
      0.25 % of USB, both in reset until it has locked. Their phase does not matter, nor does the
      ratio of ``sync`` to them: between ``sync`` and ``usb`` there are two queues with Gray-coded
      pointers and two synchronised states, paths that timing analysis may leave out.
    * ``amaranth.lib.io.Buffer`` for ``d_p`` and ``d_n``, both ways, and for ``pullup``.

    Parameters
    ----------
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``.
    identity : UsbIdentity, optional
        By default pid.codes' test number, with the fingerprint for a serial number: the port is
        ``/dev/serial/by-id/usb-Slipstick_CNN_accelerator_<fingerprint>-if00``.
    absent_cycles : int
        As of ``UsbSerialPort``.

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
    events : Out
        As of ``Accelerator``.

    Raises
    ------
    ImportError, ValueError
        As for ``UsbSerialPort``.
    """

    d_p: wiring.PureInterface
    d_n: wiring.PureInterface
    pullup: Signal
    configured: Signal
    suspended: Signal

    def __init__(
        self,
        *,
        configuration: Configuration,
        identity: UsbIdentity | None = None,
        absent_cycles: int = ABSENT_CYCLES,
    ) -> None:
        self.identity = identity or UsbIdentity(serial_number=configuration.fingerprint)
        super().__init__(
            Accelerator(configuration=configuration),
            UsbSerialPort(identity=self.identity, absent_cycles=absent_cycles),
            "port",
            {
                "d_p": Out(PIN),
                "d_n": Out(PIN),
                "pullup": Out(1),
                "configured": Out(1),
                "suspended": Out(1),
            },
        )

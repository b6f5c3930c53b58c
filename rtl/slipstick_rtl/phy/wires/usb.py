"""USB: D+ and D- on pins of the FPGA, a serial port at full speed."""

from typing import Any

from ...config import Configuration
from ..wire import BOTH, OUTPUT, Domain, Pin, Wire


def _phy(configuration: Configuration, **options: Any) -> Any:
    """Makes a USB serial port.

    Options are those of ``UsbSerialPort``. The ``identity`` is by default pid.codes' test number,
    with the fingerprint for a serial number: the port is
    ``/dev/serial/by-id/usb-Slipstick_CNN_accelerator_<fingerprint>-if00``.
    """
    from ..usb.descriptors import UsbIdentity
    from ..usb.serial_port import UsbSerialPort

    identity = UsbIdentity(serial_number=configuration.fingerprint)
    return UsbSerialPort(**{"identity": identity, **options})


def _ecp5_clocks(oscillator_hz: int) -> Any:
    from ...fpga.ecp5.usb_clocks import Ecp5UsbClocks, find_usb_pll

    return Ecp5UsbClocks(pll=find_usb_pll(oscillator_hz))


WIRE = Wire(
    name="usb",
    device="serial",
    pins=(
        Pin(name="d_p", direction=BOTH),
        Pin(name="d_n", direction=BOTH),
        Pin(name="pullup", direction=OUTPUT),
    ),
    phy=_phy,
    submodule="port",
    status=("configured", "suspended"),
    domains=(Domain(name="usb_io", hertz=48_000_000), Domain(name="usb", hertz=12_000_000)),
    clocks={"ECP5": _ecp5_clocks},
)
"""Both clocks come from one PLL, within the 0.25 % of USB, in reset until it has locked.

Their phase does not matter, nor does the ratio of ``sync`` to them: between ``sync`` and ``usb``
there are two queues with Gray-coded pointers and two synchronised states, paths that timing
analysis may leave out. Nothing is ever lost, so there is no fault.
"""

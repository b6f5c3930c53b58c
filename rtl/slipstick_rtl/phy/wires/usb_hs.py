"""USB at high speed: a ULPI chip on pins of the FPGA, bytes in bulk."""

from typing import Any

from ...config import Configuration
from ..wire import BOTH, INPUT, OUTPUT, Domain, Pin, Wire

ULPI_HZ = 60_000_000
RESET_MILLISECONDS = 10
"""No host takes a device that is away for so long for noise (USB 2.0, 7.1.7.3)."""


def _phy(
    configuration: Configuration, *, reset_milliseconds: int = RESET_MILLISECONDS, **options: Any
) -> Any:
    """Makes a high-speed port.

    Options are ``reset_milliseconds``, for a chip whose supplies come late, and those of
    ``UsbHighSpeedPort``. The ``identity`` is by default pid.codes' test number, with the
    fingerprint for a serial number.
    """
    from ..usb.descriptors import UsbIdentity
    from ..usb.high_speed_port import UsbHighSpeedPort

    identity = UsbIdentity(serial_number=configuration.fingerprint)
    reset_cycles = configuration.clock_hz * reset_milliseconds // 1000
    return UsbHighSpeedPort(**{"identity": identity, "reset_cycles": reset_cycles, **options})


def _ecp5_clocks(oscillator_hz: int) -> Any:
    from ...fpga.ecp5.domain_clock import Ecp5DomainClock

    return Ecp5DomainClock(oscillator_hz=oscillator_hz, domain="ulpi", hertz=ULPI_HZ)


WIRE = Wire(
    name="usb-hs",
    device="usb",
    pins=(
        Pin(name="data", direction=BOTH, width=8),
        Pin(name="clk", direction=INPUT),
        Pin(name="dir", direction=INPUT),
        Pin(name="nxt", direction=INPUT),
        Pin(name="stp", direction=OUTPUT),
        Pin(name="rst", direction=OUTPUT),
    ),
    phy=_phy,
    submodule="port",
    resource="ulpi",
    status=("configured", "high_speed", "suspended"),
    domains=(Domain(name="ulpi", hertz=ULPI_HZ, pin="clk"),),
    clocks={"ECP5": _ecp5_clocks},
)
"""The chip gives the clock, or takes it from a PLL of the board's FPGA (``WirePins.driven``).

Between ``sync`` and ``ulpi`` there are two queues with Gray-coded pointers, three synchronised
states and a reset, paths that timing analysis may leave out. Nothing is ever lost, so there is no
fault.
"""

"""Says what multiplies for a training by its name, and counts what crosses to a device."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from ..devices import Device, hardware_of
from ..devices.forwarding import ForwardingDevice
from ..devices.group import GroupKind, group_of
from ..errors import DeviceError, InputError
from ..loading import configuration_of

GOLDEN = "model"
"""The golden functions alone; with a target behind it, the golden model of that core."""

DEFAULT_TARGET = "sim-training"
"""Default target of simulated devices."""


class CountingDevice(ForwardingDevice[Device]):
    """A device that counts the bytes of what is written to it and read from it.

    Parameters
    ----------
    device : Device
    before : int
        Bytes that count already.

    Members
    -------
    bytes_moved : int
        Contents alone, without the frames of a wire.
    """

    def __init__(self, device: Device, before: int = 0) -> None:
        super().__init__(device)
        self.bytes_moved = before
        self._stopped = False

    def stop(self) -> None:
        """Answers whatever is asked of the device with a DeviceError; any thread may say so."""
        self._stopped = True

    def _check(self) -> None:
        if self._stopped:
            raise DeviceError("the device is wanted no more")

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """As the device."""
        self._check()
        super().run(pcs, clear)

    def write(self, space: Space, address: int, data: bytes) -> None:
        """As the device."""
        self._check()
        self.bytes_moved += len(data)
        super().write(space, address, data)

    def read(self, address: int, count: int) -> bytes:
        """As the device."""
        self._check()
        self.bytes_moved += count
        return super().read(address, count)


def check_device(name: str) -> None:
    """Refuses groups of devices that no training runs on.

    Raises
    ------
    InputError
        If it is a group other than a pool.
    DeviceError
        If it is a pool that has no devices, or a pool among them.
    """
    group = group_of(name)
    if group is not None and group[0] is not GroupKind.POOL:
        raise InputError(
            f"training must run on one device or on a pool of them, pool:D1,D2,..., not {name!r}"
        )


def is_golden(name: str, target: str | None) -> bool:
    """Tells whether a device's name stands for the golden functions alone."""
    return name == GOLDEN and target is None


def wanted_hardware(name: str, target: str | None) -> Configuration:
    """The hardware that a target or a device's name asks for, or ``DEFAULT_TARGET``'s.

    Raises
    ------
    TargetError
        If there is no such target.
    """
    wanted = hardware_of(name) if target is None else configuration_of(target)
    return wanted or configuration_of(DEFAULT_TARGET)

"""Opens what multiplies for a training: the golden functions, or a device."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from ..devices import Device, hardware_of, open_device
from ..devices.forwarding import ForwardingDevice
from ..devices.group import GroupKind, group_of
from ..errors import DeviceError, InputError
from ..loading import configuration_of
from .int8 import Int8Arithmetic, Range

GOLDEN = "model"
"""The golden functions alone; with a target behind it, the golden model of that core."""

DEFAULT_TARGET = "sim-training"
"""Of simulated devices."""


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
        """From now on, whatever is asked of the device is a DeviceError; any thread may say so."""
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
    """Whether a device's name stands for the golden functions alone."""
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


def open_arithmetic(
    name: str, target: str | None, *, master_bits: int, momentum: int, source: Range
) -> tuple[Int8Arithmetic, CountingDevice | None]:
    """The arithmetic of a training, and its device.

    Parameters
    ----------
    name : str
        ``GOLDEN``: the golden functions alone. Others are as ``open_device`` has them, and no
        groups: the three products of each layer run there.
    target : str, optional
        The hardware; by default what the device's name says, or ``DEFAULT_TARGET``.
    master_bits, momentum, source
        As ``Int8Arithmetic`` has them.

    Returns
    -------
    arithmetic : Int8Arithmetic
    device : CountingDevice or None
        To be closed; None of the golden functions.

    Raises
    ------
    DeviceError, TargetError, CapacityError
        If the device cannot be opened, or its hardware cannot train.
    """
    if is_golden(name, target):
        return Int8Arithmetic(master_bits, momentum, source), None
    from .device.arithmetic import DeviceArithmetic
    from .device.products import DeviceProducts

    device = CountingDevice(open_device(name, wanted_hardware(name, target)))
    try:
        products = DeviceProducts(device)
    except BaseException:
        device.close()
        raise
    return DeviceArithmetic(products, master_bits, momentum, source), device

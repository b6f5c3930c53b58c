"""A board on USB at high speed, through libusb."""

import errno
import importlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.usb.descriptors import TEST_PRODUCT, TEST_VENDOR
from slipstick_rtl.phy.usb.high_speed import BULK_ENDPOINT, BULK_PACKET_BYTES, INTERFACE_KIND

from ..errors import DeviceError
from .attached import AttachedDevice
from .found import FoundDevice
from .link.errors import LinkError

BYTES_PER_SECOND = 10_000_000
"""A fifth of what the wire has room for: other devices may share it."""

_IN = 0x80
_READ_BYTES = 32 * BULK_PACKET_BYTES
"""A request for bytes; the board ends it earlier, by a packet that is not full."""

_WRITE_BYTES = 1 << 16
_HIGH_SPEED = 3
"""As libusb numbers speeds."""

_WRITE_SECONDS = 1.0


class UsbTransport:
    """Two bulk endpoints as a transport.

    Parameters
    ----------
    device : usb.core.Device
        Its interface is claimed: nobody else can have it at the same time.
    name : str
        For messages.

    Raises
    ------
    DeviceError
        If the device may not be opened, is in use, or is not at high speed.
    """

    buffered_bytes = 2 * BULK_PACKET_BYTES
    """Bytes that the board's endpoint may hold before the core."""
    receive_bytes: int | None = None

    def __init__(self, device: Any, name: str) -> None:
        self._usb = importlib.import_module("usb.core")
        self._device, self._name = device, name
        self._received = bytearray()
        if device.speed is not None and device.speed < _HIGH_SPEED:
            raise DeviceError(
                f"{name} is on a port or hub of full speed: connect it to one of high speed (USB"
                " 2.0 or newer)"
            )
        try:
            device.set_configuration()
            importlib.import_module("usb.util").claim_interface(device, 0)
        except (OSError, NotImplementedError) as error:
            self.close()
            raise DeviceError(_why_not_open(name, error)) from error

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take on the wire, at the slowest."""
        return count / BYTES_PER_SECOND

    def send(self, data: bytes) -> None:
        """Hands the bytes to the board.

        Raises
        ------
        LinkError
            DISCONNECTED if the board takes none for a second, or is gone.
        """
        view = memoryview(data)
        while view:
            part = bytes(view[:_WRITE_BYTES])
            with self._connection():
                milliseconds = _milliseconds(_WRITE_SECONDS + self.seconds(len(part)))
                # a request that is too late has written some bytes, or is an error
                view = view[self._device.write(BULK_ENDPOINT, part, milliseconds) :]

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time; LinkError DISCONNECTED if
        the board is gone."""
        deadline = time.monotonic() + timeout_seconds
        while len(self._received) < count:
            left = deadline - time.monotonic()
            with self._connection(), suppress(self._usb.USBTimeoutError):
                size = max(_READ_BYTES, _whole_packets(count - len(self._received)))
                self._received += self._device.read(_IN | BULK_ENDPOINT, size, _milliseconds(left))
            if time.monotonic() >= deadline:
                break
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def take_arrived(self) -> bytes:
        """Gives all bytes that have come and were not asked for yet."""
        data = bytes(self._received)
        self._received.clear()
        return data

    def close(self) -> None:
        """Gives the device back."""
        with suppress(OSError):
            importlib.import_module("usb.util").dispose_resources(self._device)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        try:
            yield
        except self._usb.USBTimeoutError as error:
            raise LinkError(
                "DISCONNECTED",
                f"{self._name} does not take bytes any more: unplug the board, plug it in again,"
                " and open the device anew",
            ) from error
        except OSError as error:
            raise LinkError(
                "DISCONNECTED",
                f"the connection to {self._name} is lost: check the cable and open the device anew",
            ) from error


def open_usb(place: str, configuration: Configuration) -> AttachedDevice:
    """Opens the board with a serial number, at ``BUS-ADDRESS``, or the only one there is.

    A board's serial number is the fingerprint of its configuration. Of several boards, the only one
    of ``configuration`` is taken.

    Raises
    ------
    DeviceError
        As of ``UsbTransport`` and ``AttachedDevice``; or if there is no such board, there are
        several, or pyusb or libusb is missing.
    """
    devices = _devices()
    serials = {_address(device): _serial(device) for device in devices}
    wanted = place or configuration.fingerprint
    found = [
        device for device in devices if wanted in (_address(device), serials[_address(device)])
    ]
    if not place and not found:
        found = devices
    if not found:
        raise DeviceError(
            f"there is no Slipstick at usb:{place}: {_tell(serials)}"
            if place
            else "there is no Slipstick on USB at high speed: plug the board in, program it with"
            " --link usb-hs, and give serial:PORT for a board of full speed"
        )
    if len(found) > 1:
        raise DeviceError(
            f"there are {len(found)} boards at usb:{place}: give one of"
            f" {', '.join(f'usb:{_address(device)}' for device in found)}"
        )
    name = f"usb:{_address(found[0])}"
    transport = UsbTransport(found[0], name)
    advice = "connect it again, to another port if there is one"
    return AttachedDevice(transport, name, configuration, advice)


def found_boards() -> list[FoundDevice]:
    """The boards of this machine, each with its serial number."""
    try:
        devices = _devices()
    except DeviceError:
        return []
    return [_describe(_address(device), _serial(device)) for device in devices]


def _describe(place: str, serial: str) -> FoundDevice:
    """The serial number is the fingerprint."""
    description = "" if serial else "may not be opened"
    return FoundDevice(place=place, fingerprint=serial, description=description)


def _devices() -> list[Any]:
    """The Slipsticks, by their interface: many prototypes have the numbers."""
    try:
        core = importlib.import_module("usb.core")
        backend = importlib.import_module("usb.backend.libusb1").get_backend()
    except ModuleNotFoundError as error:
        raise DeviceError(
            f"usb devices need the Python package pyusb ({error}): pip install 'slipstick[usb]'"
        ) from error
    if backend is None:
        raise DeviceError(
            "usb devices need the library libusb 1.0: apt install libusb-1.0-0, brew install"
            " libusb, or on Windows pip install libusb-package"
        )
    numbers = {"idVendor": TEST_VENDOR, "idProduct": TEST_PRODUCT}
    return list(core.find(find_all=True, backend=backend, custom_match=_is_ours, **numbers))


def _is_ours(device: Any) -> bool:
    with suppress(OSError):
        return any(
            INTERFACE_KIND
            == (
                interface.bInterfaceClass,
                interface.bInterfaceSubClass,
                interface.bInterfaceProtocol,
            )
            for configuration in device
            for interface in configuration
        )
    return False


def _address(device: Any) -> str:
    return f"{device.bus}-{device.address}"


def _serial(device: Any) -> str:
    """The serial number; empty if the device may not be opened, or is in use."""
    # pyusb has a ValueError for a device that gives no languages
    with suppress(OSError, ValueError, NotImplementedError):
        return device.serial_number or ""
    return ""


def _tell(serials: dict[str, str]) -> str:
    if not serials:
        return "this machine has none; plug the board in"
    found = ", ".join(f"usb:{place} ({serial or 'unknown'})" for place, serial in serials.items())
    return f"this machine has {found}"


def _whole_packets(count: int) -> int:
    """A request for less would overflow if the board sends a full packet."""
    return -(-count // BULK_PACKET_BYTES) * BULK_PACKET_BYTES


def _milliseconds(seconds: float) -> int:
    """libusb takes 0 for no limit."""
    return max(1, math.ceil(seconds * 1000))


def _why_not_open(name: str, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if isinstance(error, NotImplementedError):
        return f"{name} has no driver that libusb can use: give it WinUSB's, by Zadig"
    if number in (errno.EACCES, errno.EPERM):
        return (
            f"{name} may not be opened: add the udev rule of docs/how-to/usb.md, and plug the"
            " board in again"
        )
    if number == errno.EBUSY:
        return f"{name} is in use by another program: close that one"
    if number in (errno.ENODEV, errno.ENOENT):
        return f"{name} is gone: plug the board in again"
    return f"{name} cannot be opened: {error}"

"""SPI controllers: Linux' own, and the wires of a simulated board."""

import errno
import fcntl
import importlib
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from slipstick_rtl.phy.spi_protocol import OVERHEAD_BYTES

from ..errors import DeviceError
from .link.errors import LinkError

LINUX_BYTES = 4096
"""A transfer that both ``spidev`` and the Linux driver, unless it is told otherwise, can do."""

LOWEST_HZ = 10_000
"""A board that does not answer is given up within seconds; slower, that would take minutes."""

_BUFFER_SIZE = Path("/sys/module/spidev/parameters/bufsiz")

BANNER = b"slipstick spi 1\n"
"""Greeting of a simulated board's server to the one client that it serves. Then each transfer
is its length, 4 bytes, least significant first, and its bytes; as many bytes come back."""

LENGTH_BYTES = 4
_CONNECT_SECONDS = 2.0
_LEAST_SECONDS = 10.0


class SpiBus(Protocol):
    """A controller with one chip.

    Members
    -------
    hz : int
        Bits a second.
    longest : int
        Bytes of a transfer, at most.
    """

    hz: int
    longest: int

    def transfer(self, data: bytes) -> bytes:
        """Sends the bytes under one chip select; returns as many.

        Raises
        ------
        LinkError
            DISCONNECTED if the controller is gone.
        """
        ...

    def close(self) -> None:
        """Frees the controller."""
        ...


def open_bus(path: str, hz: int) -> SpiBus:
    """The controller at a path: a device such as ``/dev/spidev0.0``, or a served board's socket.

    Raises
    ------
    DeviceError
        If there is none, or it cannot be opened.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise DeviceError(_why_not_open(path, error)) from error
    if stat.S_ISSOCK(mode):
        return SocketBus(path, hz)
    if stat.S_ISCHR(mode):
        return SpidevBus(path, hz)
    raise DeviceError(
        f"{path} is no SPI device: give one such as spi:/dev/spidev0.0, or what"
        " `slipstick serve-sim --physical spi` prints"
    )


class SpidevBus:
    """A chip select of the machine's SPI controller, by the package ``spidev``.

    Parameters
    ----------
    path : str
        As ``/dev/spidev0.0``.
    hz : int
        The highest frequency of SCK; the driver may take a lower one.

    Raises
    ------
    DeviceError
        If the package is missing, or the device cannot be opened, is in use, or refuses the rate.
    """

    def __init__(self, path: str, hz: int) -> None:
        try:
            spidev = importlib.import_module("spidev")
        except ImportError as error:
            raise DeviceError(
                f"SPI devices need the package spidev: pip install spidev ({error})"
            ) from error
        self.hz = hz
        self.longest = _longest_transfer()
        self._path = path
        self._device: Any = spidev.SpiDev()
        try:
            self._device.open_path(path)
            fcntl.flock(self._device.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._device.mode = 0
            self._device.bits_per_word = 8
        except OSError as error:
            self._device.close()
            raise DeviceError(_why_not_open(path, error)) from error
        try:
            self._device.max_speed_hz = hz
        except (OSError, OverflowError) as error:
            self._device.close()
            raise DeviceError(
                f"{path} cannot do {hz} Hz: give another rate, as spi:{path}@HZ"
            ) from error

    def transfer(self, data: bytes) -> bytes:
        """As of ``SpiBus``."""
        with _connection(self._path):
            return bytes(self._device.xfer2(list(data), self.hz))

    def close(self) -> None:
        """As of ``SpiBus``."""
        self._device.close()


class SocketBus:
    """The wires of a board that ``slipstick serve-sim --physical spi`` simulates.

    Parameters
    ----------
    path : str
        Of the server's socket.
    hz : int
        About the bits of a second that it simulates.

    Raises
    ------
    DeviceError
        If nobody serves there, or somebody else is served.
    """

    def __init__(self, path: str, hz: int) -> None:
        self.hz = hz
        self.longest = LINUX_BYTES
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_CONNECT_SECONDS)
        try:
            self._socket.connect(path)
            banner = self._read(len(BANNER))
        except OSError as error:
            self.close()
            raise DeviceError(_why_not_open(path, error)) from error
        if banner != BANNER:
            self.close()
            raise DeviceError(f"{path} is no board of `slipstick serve-sim --physical spi`")

    def transfer(self, data: bytes) -> bytes:
        """As of ``SpiBus``."""
        with _connection(self._path):
            self._socket.settimeout(_LEAST_SECONDS + 2 * 8 * len(data) / self.hz)
            self._socket.sendall(len(data).to_bytes(LENGTH_BYTES, "little") + data)
            return self._read(len(data))

    def close(self) -> None:
        """As of ``SpiBus``."""
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            data += part
        return data


@contextmanager
def _connection(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LinkError(
            "DISCONNECTED",
            f"the connection to {path} is lost ({error.strerror or error}): open the device anew",
        ) from error


def _longest_transfer() -> int:
    try:
        size = int(_BUFFER_SIZE.read_text())
    except (OSError, ValueError):
        return LINUX_BYTES
    return max(2 * OVERHEAD_BYTES, min(LINUX_BYTES, size))


def _why_not_open(path: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO):
        return (
            f"there is no SPI device {path}: switch SPI on in the machine's settings, and list the"
            " devices by ls /dev/spidev*"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{path} may not be opened: add yourself to the group that owns it (often spi), and log"
            " in anew"
        )
    # the server of a simulated board that has a client leaves the next one waiting
    if error.errno in (errno.EAGAIN, errno.EBUSY) or isinstance(error, TimeoutError):
        return f"{path} is in use by another program: close that one"
    if error.errno == errno.ECONNREFUSED:
        return f"nobody serves {path} any more: start `slipstick serve-sim --physical spi` again"
    return f"{path} cannot be opened as an SPI device: {error.strerror or error}"

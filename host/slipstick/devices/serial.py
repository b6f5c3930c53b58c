"""A board on a serial port."""

import errno
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import serial
from serial.tools import list_ports
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE, DEFAULT_BAUD, RATES, RECEIVE_DEPTH

from ..errors import DeviceError
from .attached import AttachedDevice, answers, split_place
from .found import FoundDevice
from .link.errors import LinkError

try:
    from termios import error as _TERMINAL_ERROR
except ImportError:  # not on Windows
    _TERMINAL_ERROR = OSError

_SLICE_SECONDS = 0.02
"""A wait for bytes is made of waits this long: the port's own timeout never changes, because some
drivers set their rate anew, and disturb what is being sent, when it does."""

LOWEST_BAUD = 300
"""Slower, a board that does not answer would be given up only after minutes."""

_WRITE_BYTES = 1 << 12
_SEARCH_SECONDS = 6.0
"""After which no further rate is tried."""
_NO_DEVICE = "n/a"
"""Hardware ID of a port without anything behind it, as on computers without a serial line."""


class _RateError(DeviceError):
    """The port is there, but cannot do a rate."""


class SerialTransport:
    """A serial port as a transport; 8 data bits, no parity, one stop bit, no flow control.

    Nobody else may have the port open, and lock it, at the same time.

    Parameters
    ----------
    port : str
        The port's name, as ``/dev/ttyUSB0`` or ``COM3``.
    baud : int
        Bits a second.

    Raises
    ------
    DeviceError
        If the port cannot be opened, or refuses the rate.
    """

    buffered_bytes = 1 << 13
    """Bytes that a driver may hold of what was sent, so that they are on the line only later."""
    receive_bytes: int | None = RECEIVE_DEPTH

    def __init__(self, port: str, baud: int = DEFAULT_BAUD) -> None:
        if baud < LOWEST_BAUD:
            raise DeviceError(
                f"baud must be at least {LOWEST_BAUD}, not {baud}: give"
                f" serial:{port}@{DEFAULT_BAUD}"
            )
        self._name = port
        self._baud = baud
        try:
            self._port = serial.Serial(
                port,
                baud,
                timeout=_SLICE_SECONDS,
                write_timeout=1.0 + 2 * self.seconds(_WRITE_BYTES),
                exclusive=True,
            )
        except serial.SerialException as error:
            raise DeviceError(_why_not_open(port, error)) from error
        except (ValueError, OverflowError) as error:
            raise _RateError(
                f"port {port} cannot do {baud} baud: give another rate, as serial:{port}"
                f"@{DEFAULT_BAUD}"
            ) from error

        # FTDI's driver keeps bytes for 16 ms otherwise; other drivers and systems have no such mode
        with suppress(ValueError, OSError, NotImplementedError, AttributeError):
            self._port.set_low_latency_mode(True)

    @property
    def baud(self) -> int:
        """Bits a second."""
        return self._baud

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take on the line."""
        return count * BITS_PER_BYTE / self._baud

    def send(self, data: bytes) -> None:
        """Leaves the bytes to the port's driver, at the rate of the line at the slowest.

        Raises
        ------
        LinkError
            DISCONNECTED if the port does not take them in twice their time and a second, or is
            gone.
        """
        with self._connection():
            for first in range(0, len(data), _WRITE_BYTES):
                self._port.write(data[first : first + _WRITE_BYTES])

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time; LinkError DISCONNECTED if
        the port is gone."""
        deadline = time.monotonic() + timeout_seconds
        data = b""
        with self._connection():
            while len(data) < count:
                data += self._port.read(count - len(data))
                if time.monotonic() >= deadline:
                    break
        return data

    def close(self) -> None:
        """Closes the port; what waits to be sent is dropped."""
        # a port that is gone, or closed, has nothing to drop
        with suppress(OSError, _TERMINAL_ERROR):
            self._port.reset_output_buffer()
        self._port.close()

    @contextmanager
    def _connection(self) -> Iterator[None]:
        try:
            yield
        except serial.SerialTimeoutException as error:
            raise LinkError(
                "DISCONNECTED",
                f"port {self._name} does not take bytes any more: unplug the board, plug it in"
                " again, and open the device anew",
            ) from error
        except (OSError, TypeError, _TERMINAL_ERROR) as error:
            # pyserial's calls give a TypeError while another thread closes the port
            raise LinkError(
                "DISCONNECTED",
                f"the connection to {self._name} is lost: check the cable and open the device anew",
            ) from error


def open_serial(place: str, configuration: Configuration) -> AttachedDevice:
    """Opens the board at ``PORT@BAUD``, or at ``PORT`` with the first of ``RATES`` that answers.

    Raises
    ------
    DeviceError
        As of ``SerialTransport`` and ``AttachedDevice``; or if the rate is not a number.
    """
    port, rate = split_place("serial", place, DEFAULT_BAUD, "/dev/ttyUSB0")
    try:
        return _attach(port, rate, configuration)
    except LinkError as error:
        if error.code != "NO_ANSWER":
            raise
        other = _answering_rate(port, configuration, rate)
        if other is None:
            raise
    if "@" not in place:
        return _attach(port, other, configuration)
    raise LinkError(
        "NO_ANSWER",
        f"the board at {port} must be opened at its own rate, {other} baud, not {rate}: give"
        f" serial:{port}@{other}, or serial:{port} to have the rate found",
    )


def _attach(port: str, rate: int, configuration: Configuration) -> AttachedDevice:
    advice = f"give the rate that it was built with, if that is an unusual one (serial:{port}@BAUD)"
    return AttachedDevice(SerialTransport(port, rate), port, configuration, advice)


def _answering_rate(port: str, configuration: Configuration, tried: int) -> int | None:
    """Returns the rate of ``RATES`` at which a Slipstick answers, None if there is none."""
    deadline = time.monotonic() + _SEARCH_SECONDS
    for rate in RATES:
        if rate == tried or time.monotonic() >= deadline:
            continue
        try:
            transport = SerialTransport(port, rate)
        except _RateError:
            continue
        with closing(transport):
            if answers(transport, configuration):
                return rate
    return None


def found_ports() -> list[FoundDevice]:
    """The serial ports of this machine that have a device, each with what it says of itself."""
    ports = sorted(list_ports.comports(), key=lambda port: port.device)
    return [
        FoundDevice(place=port.device, description=port.product or port.description)
        for port in ports
        if port.hwid != _NO_DEVICE
    ]


def _why_not_open(port: str, error: serial.SerialException) -> str:
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return (
            f"there is no port {port}: plug the board in, and list the ports by"
            " python -m serial.tools.list_ports"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"port {port} may not be opened: add yourself to the group that owns it (often dialout"
            " or uucp), and log in anew"
        )
    if error.errno in (errno.EAGAIN, errno.EBUSY):
        return f"port {port} is in use by another program: close that one"
    return f"port {port} cannot be opened as a serial port: {error}"

"""A board on a serial port."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import serial
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.line import BITS_PER_BYTE, DEFAULT_BAUD
from slipstick_rtl.link.protocol import CRC_BYTES, HEADER_BYTES, Command
from slipstick_rtl.link.spaces import WRITE_ARGUMENTS

from ..errors import DeviceError
from .exchange import Exchanger, LinkError, Patience, Request
from .link import LinkDevice
from .transport import Transport

try:
    from termios import error as _TERMINAL_ERROR
except ImportError:  # not on Windows
    _TERMINAL_ERROR = OSError

_SLICE_SECONDS = 0.02
"""A wait for bytes is made of waits this long: the port's own timeout never changes, because some
drivers set their rate anew, and disturb what is being sent, when it does."""

_WRITE_BYTES = 1 << 12
_BUFFERED_BYTES = 1 << 13
"""What a driver may hold of what was sent, so that it is on the line only later."""

_GREETING = Patience(timeout_seconds=0.7, retries=2, silence_seconds=0.02, window=1)
"""For what may be no Slipstick: three attempts, and then the truth."""


class SerialTransport:
    """A serial port as a transport; 8 data bits, no parity, one stop bit, no flow control.

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

    def __init__(self, port: str, baud: int = DEFAULT_BAUD) -> None:
        if baud < 1:
            raise DeviceError(f"baud must be at least 1, not {baud}: serial:{port}@{DEFAULT_BAUD}")
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
            raise DeviceError(
                f"port {port} cannot do {baud} baud: give another rate, as serial:{port}"
                f"@{DEFAULT_BAUD}"
            ) from error

    @property
    def baud(self) -> int:
        """Bits a second."""
        return self._baud

    def seconds(self, count: int) -> float:
        """How long so many bytes take on the line."""
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


class SerialDevice(LinkDevice):
    """A board on a serial port, greeted and idle.

    Parameters
    ----------
    transport : SerialTransport
        Closed together with the device, and if the board is not what it should be.
    name : str
        Of the port, for messages.
    configuration : Configuration
        The hardware that the board must be.

    Raises
    ------
    LinkError
        NO_ANSWER if there is no Slipstick, WRONG_HARDWARE if it is another one.
    DeviceError
        If the connection is lost.
    """

    def __init__(self, transport: SerialTransport, name: str, configuration: Configuration) -> None:
        patience = _patience(transport, configuration)
        super().__init__(transport, configuration=configuration, patience=patience)
        try:
            _greet(transport, name, configuration)
            self.identify()
            # whoever was here before may have left a run going on
            self.reset()
        except BaseException:
            self.close()
            raise


def open_serial(place: str, configuration: Configuration) -> SerialDevice:
    """The board at ``PORT`` or ``PORT@BAUD``.

    Raises
    ------
    DeviceError
        As of ``SerialTransport`` and ``SerialDevice``; or if the rate is not a number.
    """
    port, at, rate = place.rpartition("@")
    if not at:
        port, rate = place, str(DEFAULT_BAUD)
    if not (port and rate.isascii() and rate.isdigit()):
        raise DeviceError(
            f"a serial device must be serial:PORT or serial:PORT@BAUD, such as"
            f" serial:/dev/ttyUSB0@{DEFAULT_BAUD}, not 'serial:{place}'"
        )
    return SerialDevice(SerialTransport(port, int(rate)), port, configuration)


def _patience(transport: SerialTransport, configuration: Configuration) -> Patience:
    """An answer may wait for all that was sent ahead, and for what the driver still holds."""
    usual = Patience()
    frame = HEADER_BYTES + WRITE_ARGUMENTS + configuration.payload_bytes + CRC_BYTES
    line = transport.seconds(_BUFFERED_BYTES + (usual.window + 1) * frame)
    return Patience(timeout_seconds=usual.timeout_seconds + line)


def _greet(transport: Transport, name: str, configuration: Configuration) -> None:
    """Finds out quickly whether there is a Slipstick at all."""
    size = len(Identity.of(configuration).pack())
    request = Request(Command.IDENTIFY, answer_bytes=size)
    try:
        Exchanger(transport, configuration.payload_bytes, _GREETING).exchange([request])
    except LinkError as error:
        raise LinkError(
            error.code,
            f"no Slipstick answers at {name}: check that the board is programmed, and that the"
            f" baud rate is its own (serial:{name}@BAUD)",
        ) from error


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

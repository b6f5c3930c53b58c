"""A board on an SPI controller."""

import glob
import time

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.spi_protocol import (
    DEFAULT_SCK_HZ,
    DEVICE_HEADER_BYTES,
    FILLER,
    FIRST_SLOT,
    HOST_HEADER_BYTES,
    OVERHEAD_BYTES,
    POSITIONS,
    TRAILER_BYTES,
    DeviceHeader,
    HostHeader,
    Trailer,
    highest_sck_hz,
)

from ..errors import DeviceError
from .attached import AttachedDevice, split_place
from .found import FoundDevice
from .spi_bus import LOWEST_HZ, SpiBus, open_bus

_FIRST_PAUSE_SECONDS = 20e-6
_LONGEST_PAUSE_SECONDS = 1e-3
_TRANSFER_SECONDS = 1e-3
"""Time that a transfer may cost besides its bits."""

_LONGEST_SECONDS = 1.0
"""Longest transfer: at low rates it is shorter than it could be, so that waits end in time."""

_LEAST_SLOTS = 64


class SpiTransport:
    """A byte stream through the transfers of :mod:`slipstick_rtl.phy.spi_protocol`.

    Bytes move both ways in the same transfers, while something is waited for. A transfer that
    fails, whole or in part, costs time; a board that begins anew is followed.

    Parameters
    ----------
    bus : SpiBus
        Closed together with the transport.
    """

    buffered_bytes = 0
    receive_bytes: int | None = None

    def __init__(self, bus: SpiBus) -> None:
        self._bus = bus
        timely = max(_LEAST_SLOTS, round(_LONGEST_SECONDS * bus.hz / 8))
        self._longest = min(bus.longest - OVERHEAD_BYTES, timely, POSITIONS - 1)
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._synchronised = False
        self._begun = False
        self._position = 0  # of the first outgoing byte
        self._offered = 0  # in the last transfer
        self._received = 0  # position after the last incoming byte
        self._depth = 0
        self._waiting = 0  # bytes that the board has to give, as far as is known

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take."""
        transfers = -(-count // self._longest)
        bits = 8 * (count + transfers * OVERHEAD_BYTES)
        return bits / self._bus.hz + transfers * _TRANSFER_SECONDS

    def send(self, data: bytes) -> None:
        """Leaves the bytes to the transfers in which the answer is received."""
        self._outgoing += data

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time; LinkError DISCONNECTED if
        the controller is gone."""
        deadline = time.monotonic() + timeout_seconds
        pause = _FIRST_PAUSE_SECONDS
        while len(self._incoming) < count:
            moved = self._transfer(count - len(self._incoming))
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if moved:
                pause = _FIRST_PAUSE_SECONDS
            else:
                time.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        data = bytes(self._incoming[:count])
        del self._incoming[:count]
        return data

    def close(self) -> None:
        """Frees the controller; what was not sent is dropped."""
        self._outgoing.clear()
        self._bus.close()

    def _transfer(self, wanted: int) -> bool:
        """One transfer; whether any byte moved. ``wanted``: bytes that are to come, at least."""
        if not self._synchronised:
            self._ask()
            return False
        slots = max(len(self._outgoing), self._waiting, min(wanted, self._depth // 2))
        slots = min(slots, self._longest)
        data = bytes(self._outgoing[:slots])
        header = HostHeader(self._position, self._received, len(data), slots).pack()
        filled = (header.ljust(FIRST_SLOT, _FILLER) + data).ljust(FIRST_SLOT + slots, _FILLER)
        answer = self._bus.transfer(filled + TRAILER_BYTES * _FILLER)
        self._offered = len(data)
        trailer = Trailer.unpack(answer[FIRST_SLOT + slots :])
        taken, given = 0, 0
        if trailer is not None:
            taken = (trailer.taken - self._position) % POSITIONS
            given = (trailer.sent - self._received) % POSITIONS
        if trailer is None or taken > len(data) or given > slots:
            self._synchronised = False
            return False
        self._drop_sent(taken)
        self._incoming += answer[FIRST_SLOT : FIRST_SLOT + given]
        # a board that was full may have more, but how many: it is read by halves, so that one of
        # them waits, and is filled by then, unless the end is near
        full = (trailer.written - self._received) % POSITIONS == self._depth
        waiting = (trailer.written - trailer.sent) % POSITIONS
        self._waiting = max(waiting, self._depth // 2) if full else waiting
        self._received = trailer.sent
        return taken + given > 0

    def _ask(self) -> None:
        """Finds out where the board is, after a transfer whose end is unknown."""
        answer = self._bus.transfer(HOST_HEADER_BYTES * _FILLER)
        header = DeviceHeader.unpack(answer[:DEVICE_HEADER_BYTES])
        if header is None:
            return
        taken = (header.taken - self._position) % POSITIONS
        kept = (self._received - header.released) % POSITIONS
        held = (header.written - header.released) % POSITIONS
        if self._begun and taken <= self._offered and kept <= held:
            self._drop_sent(taken)
        else:
            # a board that was reset, or that another host has used
            self._position, self._received = header.taken, header.released
        self._waiting = (header.written - self._received) % POSITIONS
        self._depth = 1 << header.depth_bits
        self._offered = 0
        self._begun = self._synchronised = True

    def _drop_sent(self, count: int) -> None:
        del self._outgoing[:count]
        self._position = (self._position + count) % POSITIONS


_FILLER = bytes([FILLER])


def found_controllers() -> list[FoundDevice]:
    """Returns the SPI devices of this machine."""
    return [FoundDevice(place=path) for path in sorted(glob.glob("/dev/spidev*"))]


def open_spi(place: str, configuration: Configuration) -> AttachedDevice:
    """The board at ``PATH`` or ``PATH@HZ``: a device of Linux, or a simulated board's socket.

    Raises
    ------
    DeviceError
        As of ``open_bus`` and ``AttachedDevice``; or if the rate is no number, or above what the
        board's clock can follow.
    """
    highest = highest_sck_hz(configuration.clock_hz)
    default = min(DEFAULT_SCK_HZ, highest)
    path, hz = split_place("spi", place, default, "/dev/spidev0.0")
    if not LOWEST_HZ <= hz <= highest:
        raise DeviceError(
            f"SCK must be within {LOWEST_HZ}..{highest} Hz, up to a fourth of the board's clock,"
            f" not {hz}: give spi:{path}@{default}"
        )
    advice = f"that its pins are those of SPI, at a rate that the wires can carry (spi:{path}@HZ)"
    return AttachedDevice(SpiTransport(open_bus(path, hz)), path, configuration, advice)

"""A line that fails: a transport that spoils, holds back and loses what goes through it."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum

from .exchange import LinkError
from .transport import Transport

_LONGEST_DROP = 100
_LONGEST_INSERTION = 40


class Fault(StrEnum):
    """What a line may do to the bytes that it carries, in either direction."""

    FLIP = "bit flipped"
    DROP = "bytes dropped"
    REPEAT = "bytes repeated"
    INSERT = "bytes inserted"
    REORDER = "bytes reordered"
    STALL = "stall"
    """For a while nothing arrives on either side; then it all does."""
    DISCONNECT = "disconnection"
    """A part of what is sent arrives, and every call fails until ``reconnect``."""


SPOILING = (Fault.FLIP, Fault.DROP, Fault.REPEAT, Fault.INSERT, Fault.REORDER)
"""The faults that only change bytes."""


class FaultyTransport:
    """A transport with faults, drawn from a seed for each portion that is sent or received.

    Time in a stall is imagined: what would be waited for is counted, and told to ``idle``.

    Parameters
    ----------
    inner : Transport
        The sound line.
    seed : int
    rates : mapping of float by Fault
        How probable each fault is for a portion, 0..1, by default 0; change ``rates`` at any time.
    stall_seconds : float
        The longest stall.
    idle : callable
        Lets a number of seconds pass for the device while nothing arrives there.

    Members
    -------
    rates : dict of float by Fault
    counts : Counter of Fault
        Faults injected so far.
    stalled_seconds : float
        Imagined time waited for in stalls so far.

    Raises
    ------
    ValueError
        If a rate is not within 0..1.
    """

    def __init__(
        self,
        inner: Transport,
        *,
        seed: int,
        rates: Mapping[Fault, float] | None = None,
        stall_seconds: float = 1.0,
        idle: Callable[[float], object] = float,
    ) -> None:
        self.rates = dict(rates or {})
        for fault, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {fault.name} must be within 0..1, not {rate}")
        self.counts: Counter[Fault] = Counter()
        self.stalled_seconds = 0.0
        self._inner = inner
        self._random = random.Random(seed)
        self._stall_seconds = stall_seconds
        self._idle = idle
        self._stall_left = 0.0
        self._held = bytearray()
        self._arrived = bytearray()
        self._connected = True

    @property
    def connected(self) -> bool:
        """False from a disconnection on until ``reconnect``."""
        return self._connected

    def send(self, data: bytes) -> None:
        """Passes on what is left of the data; LinkError DISCONNECTED."""
        self._check_connection()
        if data and self._happens(Fault.DISCONNECT):
            self._deliver(data[: self._random.randrange(len(data))])
            self._disconnect()
        if data and self._happens(Fault.STALL):
            self._stall_left = self._random.uniform(0, self._stall_seconds)
        self._deliver(self._spoil(data))

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Up to ``count`` bytes of what is left of the answers; LinkError DISCONNECTED."""
        self._check_connection()
        if self._stall_left > 0:
            passed = min(timeout_seconds, self._stall_left)
            self._idle(passed)
            self.stalled_seconds += passed
            self._stall_left -= passed
            timeout_seconds -= passed
            if self._stall_left > 0:
                return b""
            self._end_stall()
        if not self._arrived:
            data = self._inner.receive(count, timeout_seconds)
            if data and self._happens(Fault.DISCONNECT):
                self._disconnect()
            self._arrived += self._spoil(data)
            if data and self._happens(Fault.STALL):
                self._stall_left = self._random.uniform(0, self._stall_seconds)
                return b""
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        return taken

    def reconnect(self) -> None:
        """Plugs the line in again; of the answers on their way, all may still come, or none."""
        self._connected = True
        self._end_stall()
        if self._random.random() < 0.5:
            self._arrived.clear()

    def calm(self) -> None:
        """No more faults; what a stall held back arrives."""
        self.rates = {}
        self._end_stall()

    def close(self) -> None:
        """Closes the sound line."""
        self._inner.close()

    def _happens(self, fault: Fault) -> bool:
        if self._random.random() >= self.rates.get(fault, 0):
            return False
        self.counts[fault] += 1
        return True

    def _check_connection(self) -> None:
        if not self._connected:
            raise LinkError("DISCONNECTED", "the faulty line is disconnected: reconnect it")

    def _disconnect(self) -> None:
        self._connected = False
        self._check_connection()

    def _deliver(self, data: bytes) -> None:
        if self._stall_left > 0:
            self._held += data
        elif data:
            self._inner.send(data)

    def _end_stall(self) -> None:
        self._stall_left = 0.0
        held, self._held = bytes(self._held), bytearray()
        self._deliver(held)

    def _spoil(self, data: bytes) -> bytes:
        for fault in SPOILING:
            if data and self._happens(fault):
                data = self._apply(fault, data)
        return data

    def _apply(self, fault: Fault, data: bytes) -> bytes:
        draw = self._random
        at = draw.randrange(len(data))
        end = at + draw.randint(1, draw.choice((1, 8, _LONGEST_DROP)))
        match fault:
            case Fault.FLIP:
                return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
            case Fault.DROP:
                return data[:at] + data[end:]
            case Fault.REPEAT:
                return data[:end] + data[at:] if draw.random() < 0.5 else data + data
            case Fault.INSERT:
                return data[:at] + draw.randbytes(draw.randint(1, _LONGEST_INSERTION)) + data[at:]
            case _:
                at = draw.randrange(max(1, len(data) - 1))
                middle = at + draw.randint(1, draw.choice((1, 8, _LONGEST_DROP)))
                end = middle + max(1, end - at)
                return data[:at] + data[middle:end] + data[at:middle] + data[end:]

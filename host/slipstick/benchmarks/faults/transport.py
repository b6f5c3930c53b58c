"""A line that fails: a transport that spoils, holds back and loses what goes through it."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ...devices.link.errors import LinkError
from ...devices.link.transport import Transport

_LONGEST_DROP = 100
_LONGEST_INSERTION = 40
_PLACES = 1 << 16


class Fault(StrEnum):
    """Faults of the bytes on a line, in either direction, and of both of its ends."""

    FLIP = "bit flipped"
    DROP = "bytes dropped"
    REPEAT = "bytes repeated"
    INSERT = "bytes inserted"
    REORDER = "bytes reordered"
    STALL = "stall"
    """For a while nothing arrives on either side; then it all does."""
    DISCONNECT = "disconnection"
    """A part of what is sent arrives, and every call fails until ``reconnect``."""
    BOARD_RESET = "board reset"
    """Between two bytes the board loses its memories and forgets what it was about."""
    INTRUSION = "another host's bytes"
    """Between two bytes another host sends its own."""
    DEATH = "host died"
    """A part of what is sent arrives, and the host is gone."""


SPOILING = (Fault.FLIP, Fault.DROP, Fault.REPEAT, Fault.INSERT, Fault.REORDER)
"""The faults that only change bytes."""


class HostDied(Exception):
    """The host that made this call is no more: nothing but its heirs may go on."""


@dataclass(frozen=True)
class Injection:
    """One fault of one portion of bytes; places are taken modulo the portion's length.

    Parameters
    ----------
    fault : Fault
    place : int
        The byte that it begins at.
    length : int
        Bytes, at least 1, where that matters.
    seed : int
        For all else.
    """

    fault: Fault
    place: int = 0
    length: int = 1
    seed: int = 0


class Plan(Protocol):
    """Chooses the faults of each portion that is sent or received."""

    def draw(self) -> Iterable[Injection]:
        """For the next portion."""
        ...


class RandomPlan:
    """Faults with fixed probabilities.

    Parameters
    ----------
    seed : int
    rates : mapping of float by Fault
        How probable each fault is for a portion, 0..1, by default 0; change ``rates`` at any time.

    Raises
    ------
    ValueError
        If a rate is not within 0..1.
    """

    def __init__(self, seed: int, rates: Mapping[Fault, float] | None = None) -> None:
        self.rates = dict(rates or {})
        for fault, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {fault.name} must be within 0..1, not {rate}")
        self._random = random.Random(seed)

    def draw(self) -> list[Injection]:
        """For the next portion."""
        draw = self._random
        return [
            Injection(
                fault,
                draw.randrange(_PLACES),
                draw.randint(1, draw.choice((1, 8, _LONGEST_DROP))),
                draw.getrandbits(30),
            )
            for fault, rate in self.rates.items()
            if draw.random() < rate
        ]


class ScheduledPlan:
    """Faults at given portions, counted from 0; none at others."""

    def __init__(self, schedule: Mapping[int, Iterable[Injection]]) -> None:
        self._schedule = dict(schedule)
        self._portion = -1

    def draw(self) -> Iterable[Injection]:
        """For the next portion."""
        self._portion += 1
        return self._schedule.get(self._portion, ())


class FaultyTransport:
    """A transport with faults, as a plan has them for each portion that is sent or received.

    Time in a stall is imagined: what would be waited for is counted, and told to ``idle``.

    Parameters
    ----------
    inner : Transport
        The sound line.
    plan : Plan
    stall_seconds : float
        The longest stall.
    idle : callable
        Lets a number of seconds pass for the device while nothing arrives there.
    reset_board : callable
        What BOARD_RESET does.
    intruder : callable
        The bytes of an INTRUSION, from a seed.

    Members
    -------
    counts : Counter of Fault
        Faults injected so far.
    stalled_seconds : float
        Imagined time waited for in stalls so far.
    """

    def __init__(
        self,
        inner: Transport,
        plan: Plan,
        *,
        stall_seconds: float = 1.0,
        idle: Callable[[float], object] = float,
        reset_board: Callable[[], object] = lambda: None,
        intruder: Callable[[int], bytes] = lambda seed: random.Random(seed).randbytes(20),
    ) -> None:
        self.counts: Counter[Fault] = Counter()
        self.stalled_seconds = 0.0
        self._inner, self._plan = inner, plan
        self._stall_seconds, self._idle = stall_seconds, idle
        self._reset_board, self._intruder = reset_board, intruder
        self._stall_left = 0.0
        self._held = bytearray()
        self._arrived = bytearray()
        self._connected, self._calm = True, False

    @property
    def connected(self) -> bool:
        """False from a disconnection on until ``reconnect``."""
        return self._connected

    def send(self, data: bytes) -> None:
        """Passes on what is left of the data; LinkError DISCONNECTED, or HostDied."""
        self._check_connection()
        for injection in self._injections() if data else ():
            match injection.fault:
                case Fault.STALL:
                    self._stall(injection)
                case fault if fault in SPOILING:
                    data = spoil(injection, data)
                case _:
                    at = injection.place % (len(data) + 1)
                    self._deliver(data[:at])
                    data = data[at:]
                    self._happen(injection)
        self._deliver(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Up to ``count`` bytes of what is left of the answers; LinkError as ``send``."""
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
            if data:
                self._arrive(data)
            if self._stall_left > 0:
                return b""
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        return taken

    def reconnect(self) -> None:
        """Plugs the line in again; of the answers on their way, all may still come, or none."""
        self._connected = True
        self._end_stall()
        if sum(self.counts.values()) % 2:
            self._arrived.clear()

    def calm(self, calm: bool = True) -> None:
        """No more faults, or faults again; what a stall held back arrives."""
        self._calm = calm
        self._end_stall()

    def close(self) -> None:
        """Closes the sound line."""
        self._inner.close()

    def _arrive(self, data: bytes) -> None:
        for injection in self._injections():
            if injection.fault in SPOILING:
                data = spoil(injection, data)
            elif injection.fault is Fault.STALL:
                self._stall(injection)
            else:
                self._happen(injection)
        self._arrived += data

    def _injections(self) -> Iterable[Injection]:
        for injection in () if self._calm else self._plan.draw():
            self.counts[injection.fault] += 1
            yield injection

    def _happen(self, injection: Injection) -> None:
        match injection.fault:
            case Fault.DISCONNECT:
                self._connected = False
                self._check_connection()
            case Fault.DEATH:
                self._arrived.clear()
                raise HostDied
            case Fault.BOARD_RESET:
                self._reset_board()
            case _:
                self._deliver(self._intruder(injection.seed))

    def _stall(self, injection: Injection) -> None:
        self._stall_left = self._stall_seconds * injection.place / _PLACES

    def _check_connection(self) -> None:
        if not self._connected:
            raise LinkError("DISCONNECTED", "the faulty line is disconnected: reconnect it")

    def _deliver(self, data: bytes) -> None:
        if self._stall_left > 0:
            self._held += data
        elif data:
            self._inner.send(data)

    def _end_stall(self) -> None:
        self._stall_left = 0.0
        held, self._held = bytes(self._held), bytearray()
        self._deliver(held)


def spoil(injection: Injection, data: bytes) -> bytes:
    """Returns some bytes as one of the ``SPOILING`` faults leaves them."""
    if not data:
        return data
    draw = random.Random(injection.seed)
    at = injection.place % len(data)
    end = at + injection.length
    match injection.fault:
        case Fault.FLIP:
            return data[:at] + bytes([data[at] ^ 1 << injection.seed % 8]) + data[at + 1 :]
        case Fault.DROP:
            return data[:at] + data[end:]
        case Fault.REPEAT:
            return data[:end] + data[at:] if injection.seed % 2 else data + data
        case Fault.INSERT:
            return data[:at] + draw.randbytes(draw.randint(1, _LONGEST_INSERTION)) + data[at:]
        case _:
            at = min(at, max(0, len(data) - 2))
            middle = at + injection.length
            end = middle + draw.randint(1, injection.length)
            return data[:at] + data[middle:end] + data[at:middle] + data[end:]

"""Hosts that share one line, and hosts and boards that go at every byte of a session."""

import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from slipstick_rtl.link.protocol import Space

from ...devices.link import LinkDevice
from ...devices.link.errors import LinkError
from ...devices.link.transport import Transport
from ...runtime.executor import Execution
from .boards import Board
from .network import Work
from .transport import HostDied

_LONGEST_TURN = 8


class SharedLine:
    """One line for several hosts, each in a thread of its own, which take turns at every call.

    Only one thread goes on at a time, and chance decides which, so that a seed decides everything.
    What the board answers goes to all hosts, or to that one which happens to look.

    Parameters
    ----------
    inner : Transport
    hosts : int
    seed : int
    everyone_hears : bool
        As on a bus; otherwise as with a port that several processes have opened.
    """

    def __init__(self, inner: Transport, hosts: int, seed: int, everyone_hears: bool) -> None:
        self._inner = inner
        self._heard: list[deque[int]] = [deque() for _ in range(hosts)]
        self._everyone_hears = everyone_hears
        self._random = random.Random(seed)
        self._alive = list(range(hosts))
        self._turn, self._left = 0, _LONGEST_TURN
        self._changed = threading.Condition()

    def transport(self, host: int) -> "HostTransport":
        """One host's end."""
        return HostTransport(self, host)

    def send(self, host: int, data: bytes) -> None:
        """In two parts, so that another host's bytes may come between."""
        cut = self._random.randint(0, len(data)) if self._random.random() < 0.05 else len(data)
        self._inner.send(data[:cut])
        if cut < len(data):
            self.take_turns(host)
            self._inner.send(data[cut:])

    def receive(self, host: int, count: int, timeout_seconds: float) -> bytes:
        """Receives the bytes that the host hears."""
        heard = self._heard[host]
        if not heard:
            data = self._inner.receive(count, timeout_seconds)
            for other in range(len(self._heard)) if self._everyone_hears else [host]:
                self._heard[other].extend(data)
        return bytes(heard.popleft() for _ in range(min(count, len(heard))))

    def take_turns(self, host: int) -> None:
        """Lets others go on, perhaps; returns when it is this host's turn."""
        with self._changed:
            self._left -= 1
            if self._left <= 0 and self._turn == host:
                self._pass_on()
            self._await(host)

    def await_first_turn(self, host: int) -> None:
        """Before a host's first call."""
        with self._changed:
            self._await(host)

    def leave(self, host: int) -> None:
        """The host has nothing more to do."""
        with self._changed:
            self._alive.remove(host)
            if self._alive:
                self._pass_on()

    def _pass_on(self) -> None:
        self._turn = self._random.choice(self._alive)
        self._left = self._random.choice((1, 2, 4, _LONGEST_TURN))
        self._changed.notify_all()

    def _await(self, host: int) -> None:
        if not self._changed.wait_for(lambda: self._turn == host, timeout=60):
            raise RuntimeError(f"host {host} waits for its turn on a shared line for a minute")


class HostTransport:
    """One host's end of a shared line."""

    def __init__(self, line: SharedLine, host: int) -> None:
        self._line, self._host = line, host

    def send(self, data: bytes) -> None:
        """Sends when it is this host's turn."""
        self._line.take_turns(self._host)
        self._line.send(self._host, data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Receives when it is this host's turn."""
        self._line.take_turns(self._host)
        return self._line.receive(self._host, count, timeout_seconds)

    def close(self) -> None:
        """The line belongs to all."""


@dataclass
class SharedTally:
    """Counts the results that hosts on a shared line were told."""

    sessions: int = 0
    right: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def share(
    board: Board, work: Work, seed: int, *, hosts: int = 2, operations: int = 20, bus: bool = False
) -> SharedTally:
    """Lets hosts that know nothing of each other use one board, at the same time.

    Each opens sessions, and so takes the board from the other, loads the program, runs it, and
    writes and reads memory: everything that it is told must be right.

    Parameters
    ----------
    board : Board
    work : Work
    seed : int
    hosts, operations : int
        How many hosts, and how many operations each does.
    bus : bool
        Whether every host hears all answers.
    """
    line = SharedLine(board.transport, hosts, seed, bus)
    tally = SharedTally()
    failures: list[BaseException] = []

    def live(host: int) -> None:
        try:
            line.await_first_turn(host)
            _Guest(board, work, line.transport(host), tally, seed * hosts + host).live(operations)
        except BaseException as error:
            failures.append(error)
        finally:
            line.leave(host)

    threads = [threading.Thread(target=live, args=(host,)) for host in range(hosts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return tally


class _Guest:
    """One of the hosts."""

    def __init__(
        self, board: Board, work: Work, transport: Transport, tally: SharedTally, seed: int
    ) -> None:
        self._board, self._work, self._transport, self._tally = board, work, transport, tally
        self._random = random.Random(seed)
        self._device: LinkDevice | None = None
        self._execution: Execution | None = None

    def live(self, operations: int) -> None:
        for _ in range(operations):
            name, action = self._random.choice(
                (("inference", self._infer), ("inference", self._infer), ("memory", self._store))
            )
            try:
                if action():
                    self._tally.right[name] += 1
                else:
                    self._tally.wrong.append(name)
            except LinkError as error:
                self._tally.failed[error.code] += 1
                self._device = self._execution = None

    def _begin(self) -> LinkDevice:
        if self._device is None:
            self._tally.sessions += 1
            self._device = LinkDevice(
                self._transport,
                configuration=self._board.configuration,
                patience=self._board.patience,
                pause=self._board.pause,
                draw=self._random,
            )
        return self._device

    def _infer(self) -> bool:
        device = self._begin()
        if self._execution is None:
            self._execution = Execution(self._work.program, device)
        sample = self._random.randrange(len(self._work.feeds))
        values = self._execution.infer(self._work.feeds[sample])
        expected = self._work.expected[sample]
        return all(np.array_equal(values[name], expected[name]) for name in expected)

    def _store(self) -> bool:
        """At a place where the other host stores, too."""
        data = self._random.randbytes(100)
        address = self._board.configuration.activation_bytes - 120
        self._begin().write(Space.ACTIVATIONS, address, data)
        return self._device is not None and self._device.read(address, 100) == data


class InterruptedLine:
    """A sound line on which something happens once, after a number of bytes were sent."""

    def __init__(self, inner: Transport, after: int, event: Callable[[], object]) -> None:
        self._inner, self._left, self._event = inner, after, event

    def send(self, data: bytes) -> None:
        """Passes on the data; in the middle of them it happens."""
        if 0 <= self._left < len(data):
            cut, self._left = self._left, -1
            self._inner.send(data[:cut])
            self._event()
            data = data[cut:]
        self._left -= len(data) if self._left >= 0 else 0
        self._inner.send(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Receives the board's answer."""
        return self._inner.receive(count, timeout_seconds)

    def close(self) -> None:
        """Closes the sound line."""
        self._inner.close()

    @property
    def happened(self) -> bool:
        """Tells whether the event has happened."""
        return self._left < 0


def _die() -> None:
    raise HostDied


def interrupt(board: Board, work: Work, after: int, *, host_dies: bool, seed: int = 0) -> str:
    """A session that opens, loads, and infers twice, interrupted after some of its bytes.

    Parameters
    ----------
    board : Board
    work : Work
    after : int
        Bytes that the host sends before the event.
    host_dies : bool
        The host dies; otherwise the board is reset, and loses its memories.

    Returns
    -------
    str
        ``finished`` if the session was shorter, else what the host was told: ``right``, ``died``,
        or the code of an error; ``wrong`` if any result was, of this host or of its heir.
    """
    event = _die if host_dies else board.power_cycle
    line = InterruptedLine(board.transport, after, event)
    told = "right"
    for transport in (line, board.transport):
        device = LinkDevice(
            transport,
            configuration=board.configuration,
            patience=board.patience,
            pause=board.pause,
            draw=random.Random(seed + after),
        )
        try:
            execution = Execution(work.program, device)
            for feed, expected in list(zip(work.feeds, work.expected, strict=True))[:2]:
                values = execution.infer(feed)
                if not all(np.array_equal(values[name], expected[name]) for name in expected):
                    return "wrong"
        except HostDied:
            told = "died"
        except LinkError as error:
            if transport is not line:
                raise
            told = error.code
    return told if line.happened else "finished"

"""Turns of the threads that drive boards: one of them works at a time, the others wait.

CPython runs one thread at a time anyway, and passes its lock on at every system call. On several
processors that costs more than the call itself: four boards took twice one board's time per image.
So a thread keeps its turn until it waits for its board, or others have waited for long enough.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

TURN_SECONDS = 10e-3
"""Time that a thread keeps its turn while others wait: long against a change of threads. A board
that makes its thread wait ends the turn sooner."""

P = ParamSpec("P")
R = TypeVar("R")


class Turns:
    """A lock that goes from thread to thread in the order in which they ask for it.

    Parameters
    ----------
    turn_seconds : float
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn_seconds = turn_seconds
        self._changing = threading.Lock()
        self._owner: int | None = None
        self._since = 0.0
        self._queue = deque[tuple[int, threading.Lock]]()
        """Threads that wait, each with a lock that opens when its turn has come."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """The body is this thread's turn. A thread that has its turn cannot take it again."""
        self._take()
        try:
            yield
        finally:
            self._give()

    def wait(self, function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Calls a function that may wait for something; others have their turns meanwhile."""
        if self._owner != threading.get_ident():
            return function(*args, **named)
        self._give()
        try:
            return function(*args, **named)
        finally:
            self._take()

    def offer(self) -> None:
        """Gives others their turns, if they wait and this thread has had its own for long."""
        # looked at for every answer
        if not self._queue or self._owner != threading.get_ident():
            return
        if time.monotonic() - self._since >= self._turn_seconds:
            self._give()
            self._take()

    def _take(self) -> None:
        me = threading.get_ident()
        with self._changing:
            if self._owner is None:
                opened = None
                self._owner = me
            else:
                opened = threading.Lock()
                opened.acquire()
                self._queue.append((me, opened))
        if opened is not None:
            opened.acquire()
        self._since = time.monotonic()

    def _give(self) -> None:
        with self._changing:
            if self._queue:
                self._owner, opened = self._queue.popleft()
                opened.release()
            else:
                self._owner = None


TURNS = Turns()
"""Turns of this process, whose threads share one interpreter."""

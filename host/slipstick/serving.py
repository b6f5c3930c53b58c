"""A device of this process behind a pseudo-terminal: a serial port as far as others can tell."""

import os
import select
import tty
from collections.abc import Callable
from typing import Protocol

READ_BYTES = 256
"""Taken at once: few enough for answers to leave soon, while the device is fed without a pause."""

PATIENCE_SECONDS = 0.2


class Endpoint(Protocol):
    """A device whose time may go on by itself."""

    @property
    def idle(self) -> bool:
        """Nothing happens before the next byte."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Takes bytes, or lets a little time pass; returns what came meanwhile."""
        ...


class PseudoTerminal:
    """A pair of connected terminals: others open the one by its ``path``, this object is the other.

    It never waits for them: what they do not read in time is dropped, as on a real line.

    Members
    -------
    path : str
        The port's name.
    """

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        # raw from the beginning; and held open, so that clients may come and go
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)

    def read(self, timeout_seconds: float) -> bytes:
        """Some bytes, or none if none come within the time."""
        ready, _, _ = select.select([self._master], [], [], timeout_seconds)
        return os.read(self._master, READ_BYTES) if ready else b""

    def write(self, data: bytes) -> None:
        """Bytes for whoever has the port open."""
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                return

    def close(self) -> None:
        """Pulls the plug."""
        for end in (self._master, self._slave):
            os.close(end)

    def __enter__(self) -> "PseudoTerminal":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def serve(
    terminal: PseudoTerminal, endpoint: Endpoint, stopped: Callable[[], bool] = lambda: False
) -> None:
    """Carries bytes between the two until it is interrupted, or told to stop.

    Parameters
    ----------
    terminal : PseudoTerminal
    endpoint : Endpoint
    stopped : callable
        Asked several times a second.
    """
    while not stopped():
        data = terminal.read(PATIENCE_SECONDS if endpoint.idle else 0.0)
        answers = endpoint.feed(data)
        if answers:
            terminal.write(answers)

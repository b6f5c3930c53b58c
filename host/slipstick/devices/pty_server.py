"""A device of this process for other processes: behind a pseudo-terminal, a serial port as far as
they can tell, or behind a socket that stands for the wires of SPI."""

import os
import select
import socket
import tempfile
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from .spi_bus import BANNER, LENGTH_BYTES

READ_BYTES = 256
"""Taken at once: few enough for answers to leave soon, while the device is fed without a pause."""

PATIENCE_SECONDS = 0.2
LONGEST_RECEIVE = 1 << 16


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


class TransferEndpoint(Protocol):
    """A device on SPI whose time may go on by itself."""

    @property
    def idle(self) -> bool:
        """Nothing happens before the next transfer."""
        ...

    def transfer(self, data: bytes) -> bytes:
        """Takes the bytes of one chip select; returns those that come back."""
        ...

    def rest(self) -> None:
        """Lets a little time pass."""
        ...


class TransferSocket:
    """The wires of SPI: a socket that serves one client at a time, transfer by transfer.

    The next client waits, for as long as it likes. One that goes away, even amid a transfer, leaves
    nothing behind.

    Members
    -------
    path : str
        The socket's.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="slipstick-")
        self.path = str(Path(self._folder.name) / "spi")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._client: socket.socket | None = None
        self._received = b""

    def next(self, timeout_seconds: float) -> bytes:
        """The bytes of a transfer, or none if none is complete within the time."""
        ready, _, _ = select.select([self._client or self._listener], [], [], timeout_seconds)
        if not ready:
            return b""
        if self._client is None:
            self._client, _ = self._listener.accept()
            self.answer(BANNER)
            return b""
        try:
            part = self._client.recv(LONGEST_RECEIVE)
        except OSError:
            part = b""
        if not part:
            self._drop()
            return b""
        self._received += part
        size = int.from_bytes(self._received[:LENGTH_BYTES], "little")
        if len(self._received) < LENGTH_BYTES + size:
            return b""
        data = self._received[LENGTH_BYTES : LENGTH_BYTES + size]
        self._received = self._received[LENGTH_BYTES + size :]
        return data

    def answer(self, data: bytes) -> None:
        """Sends the client the bytes that came back in the transfer."""
        try:
            if self._client is not None:
                self._client.sendall(data)
        except OSError:
            self._drop()

    def close(self) -> None:
        """Cuts the wires."""
        self._drop()
        self._listener.close()
        self._folder.cleanup()

    def __enter__(self) -> "TransferSocket":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
        self._received = b""


def serve_transfers(
    wires: TransferSocket,
    endpoint: TransferEndpoint,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Carries transfers between the two until it is interrupted, or told to stop.

    Parameters
    ----------
    wires : TransferSocket
    endpoint : TransferEndpoint
    stopped : callable
        Asked several times a second.
    """
    while not stopped():
        data = wires.next(PATIENCE_SECONDS if endpoint.idle else 0.0)
        if data:
            wires.answer(endpoint.transfer(data))
        elif not endpoint.idle:
            endpoint.rest()

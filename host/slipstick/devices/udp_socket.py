"""A connected UDP socket, and the clock that goes with it."""

import math
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from ..errors import DeviceError
from .turns import TURNS

Address = tuple[str, int]

_RECEIVE_BYTES = 2048
_RECEIVE_BUFFER = 1 << 20
_UDP_SEGMENT = 103
"""Number of Linux's socket option UDP_SEGMENT, since 4.18."""


class Connection(Protocol):
    """Datagrams to and from one other end, and the time; ``UdpSocket``, or an imagined network."""

    def send(self, datagram: bytes, /) -> object:
        """Sends a datagram; OSError if that is known not to work."""
        ...

    def receive(self) -> bytes:
        """Returns a datagram that has come; BlockingIOError if there is none."""
        ...

    def wait(self, seconds: float, /) -> bool:
        """Waits until a datagram is there or the time is over; returns whether one is there."""
        ...

    def now(self) -> float:
        """The time, in seconds."""
        ...

    def cut_into(self, size: int) -> bool:
        """Returns whether ``send`` will cut what it gets into datagrams of ``size`` bytes."""
        ...

    def close(self) -> None:
        """Ends the connection."""
        ...


class UdpSocket:
    """A UDP socket that only knows one other end, and never waits but in ``wait``.

    Parameters
    ----------
    address : tuple
        IPv4 address and port of the other end.
    name : str
        For messages.

    Raises
    ------
    DeviceError
        If this computer has no way to the address.
    """

    now = staticmethod(time.monotonic)

    def __init__(self, address: Address, name: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            self._socket.connect(address)
        except OSError as error:
            self._socket.close()
            raise DeviceError(f"{name} cannot be reached: {error.strerror}") from error
        # called for every datagram: no step between
        self.send: Callable[[bytes], object] = self._socket.send
        self.receive: Callable[[], bytes] = partial(self._socket.recv, _RECEIVE_BYTES)
        self.wait = _waiter(self._socket)
        self.close = self._socket.close

    def cut_into(self, size: int) -> bool:
        """As ``Connection.cut_into``: Linux can, which saves most of the system's time."""
        if sys.platform != "linux":
            return False
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, size)
        except OSError:
            return False
        return True


def _waiter(connection: socket.socket) -> Callable[[float], bool]:
    """Returns a function that waits for a datagram, and tells whether there is one."""
    if not hasattr(select, "poll"):  # on Windows
        return lambda seconds: bool(
            TURNS.wait(select.select, [connection], [], [], max(0.0, seconds))[0]
        )
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    poll, ceil = poller.poll, math.ceil
    # below 0 it would wait for ever
    return lambda seconds: bool(TURNS.wait(poll, ceil(1000 * seconds)) if seconds > 0 else poll(0))

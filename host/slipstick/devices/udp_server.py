"""A board of this process behind a UDP port, for other processes."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from slipstick_rtl.phy.ethernet.datagrams import PORT

from ..errors import DeviceError

Packet = tuple[bytes, int, bytes]
"""A UDP payload with the address and port that it comes from or goes to."""

LOOPBACK = "127.0.0.1"

_PATIENCE_SECONDS = 0.1
_RECEIVE_BYTES = 2048
_MOST_AT_ONCE = 64


class DatagramBoard(Protocol):
    """A board that takes and gives datagrams, such as ``EthernetPort``, and its time."""

    @property
    def rest_seconds(self) -> float:
        """Returns the seconds without events unless a datagram comes; 0: time must go on now."""
        ...

    def receive(self, address: bytes, port: int, payload: bytes, now: float) -> list[Packet]:
        """Takes the payload of a datagram; returns what the board sends."""
        ...

    def poll(self, now: float) -> list[Packet]:
        """Lets a little time pass; returns what the board sends."""
        ...


def open_port(port: int | None = None) -> socket.socket:
    """Opens a UDP port of the loopback interface.

    Parameters
    ----------
    port : int, optional
        0: one that is free. By default that of boards, or if it is in use one that is free.

    Raises
    ------
    DeviceError
        If it is in use.
    """
    connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    connection.setblocking(False)
    for number in (PORT, 0) if port is None else (port,):
        with suppress(OSError, OverflowError):
            connection.bind((LOOPBACK, number))
            return connection
    connection.close()
    raise DeviceError(f"UDP port {port} of this machine is in use, or none: give another one, or 0")


def serve(
    connection: socket.socket, board: DatagramBoard, stopped: Callable[[], bool] = lambda: False
) -> None:
    """Carries datagrams between the two until it is interrupted, or told to stop.

    Parameters
    ----------
    connection : socket
        As ``open_port`` opens it.
    board : DatagramBoard
    stopped : callable
        Asked several times a second.
    """
    while not stopped():
        select.select([connection], [], [], min(board.rest_seconds, _PATIENCE_SECONDS))
        # what the network says of hosts that are gone is of no interest
        with suppress(OSError):
            for _ in range(_MOST_AT_ONCE):
                payload, (address, port) = connection.recvfrom(_RECEIVE_BYTES)
                now = time.monotonic()
                _send(connection, board.receive(socket.inet_aton(address), port, payload, now))
        _send(connection, board.poll(time.monotonic()))


def _send(connection: socket.socket, packets: list[Packet]) -> None:
    for address, port, payload in packets:
        with suppress(OSError):
            connection.sendto(payload, (socket.inet_ntoa(address), port))

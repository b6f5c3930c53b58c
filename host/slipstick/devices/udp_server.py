"""A board of this process behind a UDP port, for other processes."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

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
        """How long nothing happens unless a datagram comes; 0: time must go on now."""
        ...

    def receive(self, address: bytes, port: int, payload: bytes, now: float) -> list[Packet]:
        """Takes the payload of a datagram; returns what the board sends."""
        ...

    def poll(self, now: float) -> list[Packet]:
        """Lets a little time pass; returns what the board sends."""
        ...


def open_port(port: int = 0) -> socket.socket:
    """Opens a UDP port of the loopback interface; 0: one that is free."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        connection.setblocking(False)
        connection.bind((LOOPBACK, port))
    except BaseException:
        connection.close()
        raise
    return connection


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

"""Finds the boards on the networks of this machine, by broadcast."""

import secrets
import select
import socket
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from slipstick_rtl.phy.ethernet.datagrams import PORT, Datagram, Kind, Presence

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

ATTEMPTS = 2
ATTEMPT_SECONDS = 0.25
"""Time that the answers to one question may take."""

_LOOPBACK: tuple[str, str] = ("127.0.0.1", "127.0.0.1")
_EVERYWHERE = "255.255.255.255"
_RECEIVE_BYTES = 2048
_MOST_BOARDS = 1000
_ADDRESS, _BROADCAST_ADDRESS = 0x8915, 0x8919
"""Requests of Linux to an interface, SIOCGIFADDR and SIOCGIFBRDADDR."""
_ADDRESS_PLACE = slice(20, 24)


@dataclass(frozen=True)
class FoundBoard:
    """A board that answered.

    Parameters
    ----------
    address : str
    port : int
    presence : Presence
    """

    address: str
    port: int
    presence: Presence

    @property
    def place(self) -> str:
        """As in ``udp:PLACE``."""
        return self.address if self.port == PORT else f"{self.address}:{self.port}"


def discover(
    port: int = PORT, attempts: int = ATTEMPTS, seconds: float = ATTEMPT_SECONDS
) -> list[FoundBoard]:
    """Returns the boards that answer a broadcast, in the order of their addresses.

    Parameters
    ----------
    port : int
        Where the boards listen.
    attempts : int
        How often they are asked.
    seconds : float
        How long each attempt waits for answers.
    """
    question = Datagram(
        kind=Kind.DISCOVER, number=secrets.randbelow(1 << 16), lease=secrets.randbelow(1 << 16)
    )
    found: dict[tuple[str, int], FoundBoard] = {}
    with ExitStack() as stack:
        sockets: dict[socket.socket, set[str]] = {}
        for own, broadcast in _networks():
            connection = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            connection.setblocking(False)
            # an interface may be gone by now, or may not broadcast
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                connection.bind((own, 0))
                # a board without an address of this network hears the second
                sockets[connection] = {broadcast, own if own == broadcast else _EVERYWHERE}
        for _ in range(attempts):
            for connection, broadcasts in sockets.items():
                for broadcast in broadcasts:
                    with suppress(OSError):
                        connection.sendto(question.pack(), (broadcast, port))
            _collect([*sockets], question, found, time.monotonic() + seconds)
    return sorted(found.values(), key=lambda board: (socket.inet_aton(board.address), board.port))


def _collect(
    sockets: list[socket.socket],
    question: Datagram,
    found: dict[tuple[str, int], FoundBoard],
    deadline: float,
) -> None:
    while (left := deadline - time.monotonic()) > 0 and len(found) < _MOST_BOARDS:
        ready, _, _ = select.select(sockets, [], [], left)
        for connection in ready:
            with suppress(OSError, ValueError):
                payload, (address, port) = connection.recvfrom(_RECEIVE_BYTES)
                reply = Datagram.unpack(payload)
                is_ours = (reply.number, reply.lease) == (question.number, question.lease)
                if is_ours and reply.kind is Kind.HERE:
                    presence = Presence.unpack(reply.body)
                    found[address, port] = FoundBoard(address, port, presence)


def _networks() -> list[tuple[str, str]]:
    """This machine's own address and the broadcast address of each of its networks."""
    if fcntl is None:
        return [_LOOPBACK, *((own, _EVERYWHERE) for own in _named_addresses())]
    networks: list[tuple[str, str]] = [_LOOPBACK]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        for _, name in socket.if_nameindex():
            # an interface without an address, or without broadcasts
            with suppress(OSError):
                own = _ask_interface(connection, _ADDRESS, name)
                broadcast = _ask_interface(connection, _BROADCAST_ADDRESS, name)
                if not own.startswith("127.") and broadcast != "0.0.0.0":
                    networks.append((own, broadcast))
    if len(networks) == 1:
        # not Linux
        networks += [(own, _EVERYWHERE) for own in _named_addresses()]
    return networks


def _ask_interface(connection: socket.socket, what: int, name: str) -> str:
    assert fcntl is not None
    request = struct.pack("256s", name.encode()[:15])
    return socket.inet_ntoa(fcntl.ioctl(connection.fileno(), what, request)[_ADDRESS_PLACE])


def _named_addresses() -> list[str]:
    """The addresses that the name of this machine has."""
    with suppress(OSError, UnicodeError):
        _, _, addresses = socket.gethostbyname_ex(socket.gethostname())
        return [address for address in addresses if not address.startswith("127.")]
    return []

"""A board on Ethernet."""

import ipaddress
import socket

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.ethernet.datagrams import PORT

from ..errors import DeviceError
from .attached import AttachedDevice
from .found import FoundDevice
from .kinds import TAKE
from .udp_claim import claim
from .udp_discovery import FoundBoard, discover
from .udp_socket import Address, UdpSocket
from .udp_transport import owner_of

__all__ = ["found_boards", "open_udp"]

_FORM = "udp:ADDRESS or udp:ADDRESS:PORT, such as udp:192.168.1.50"


def open_udp(place: str, configuration: Configuration) -> AttachedDevice:
    """Opens the board at ``ADDRESS[:PORT][+take]``, or the only one on the network.

    Without an address, that is the only board of ``configuration``. ``+take`` takes it from
    another host.

    Raises
    ------
    DeviceError
        As of ``claim`` and ``AttachedDevice``; or if the place is none, or there is no such board.
    """
    place, plus, word = place.partition("+")
    if plus and word != TAKE[1:]:
        raise DeviceError(f"after the + must come take, not {word!r}: give udp:{place}{TAKE}")
    if place:
        address = _find_address(place)
    else:
        board = _only_board(configuration)
        place, address = board.place, (board.address, board.port)
    name = f"udp:{place}"
    transport = claim(UdpSocket(address, name), name, take=bool(plus))
    advice = "that nothing between this computer and the board drops large datagrams"
    return AttachedDevice(transport, name, configuration, advice)


def found_boards() -> list[FoundDevice]:
    """The boards on the networks of this machine, each with its fingerprint and owner."""
    return [_describe(board) for board in discover()]


def _describe(board: FoundBoard) -> FoundDevice:
    presence = board.presence
    fingerprint = presence.identity.fingerprint
    return FoundDevice(place=board.place, fingerprint=fingerprint, owner=owner_of(presence))


def _only_board(configuration: Configuration) -> FoundBoard:
    boards = discover()
    wanted = configuration.fingerprint
    found = [board for board in boards if board.presence.identity.fingerprint == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(f"udp:{board.place}" for board in found)
        raise DeviceError(
            f"there are {len(found)} boards of {wanted} on this network: give one of {places}"
        )
    others = ", ".join(f"udp:{_describe(board)}" for board in boards)
    raise DeviceError(
        f"there is no board of {wanted} ({configuration.shape}) on this network, but {others}: give"
        " that board's --target"
        if others
        else "no board on this network answers: plug it in, or give its address as udp:ADDRESS"
    )


def _find_address(place: str) -> Address:
    """The IPv4 address and port of ``ADDRESS``, ``NAME`` or either with ``:PORT``."""
    if place.startswith("[") or place.count(":") > 1:
        raise DeviceError(
            f"a board must have an IPv4 address or a name, not {place!r}: boards do not speak IPv6"
        )
    host, colon, number = place.partition(":")
    port = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 0
    if not colon:
        port = PORT
    if not (host and host.isprintable() and 0 < port < 1 << 16):
        raise DeviceError(f"a board on Ethernet must be {_FORM}, not 'udp:{place}'")
    return _resolve(host), port


def _resolve(host: str) -> str:
    if not host.strip("0123456789."):
        # other readers take 10.1 for 10.0.0.1
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise DeviceError(f"{host!r} is no IPv4 address: give {_FORM}") from None
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, ValueError) as error:
        raise DeviceError(
            f"there is no computer or board by the name {host!r}: give its address, which slipstick"
            " devices lists"
        ) from error
    return str(found[0][4][0])

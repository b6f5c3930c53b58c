"""Claims a board on Ethernet for this host."""

import secrets
from contextlib import suppress

from slipstick_rtl.phy.ethernet.datagrams import (
    LONGEST_SLOT,
    MOST_SLOTS,
    Datagram,
    Kind,
    Presence,
)

from ..errors import DeviceError
from .link.errors import LinkError
from .udp_socket import Connection
from .udp_transport import UdpTransport, owner_of

_CLAIM_SECONDS = (0.1, 0.2, 0.4, 0.4, 0.4)
"""Time that each attempt to claim a board waits."""
_REFUSALS = 2
"""Number of times that a computer says that nothing listens there until it is believed."""


def claim(connection: Connection, name: str, *, take: bool = False) -> UdpTransport:
    """Claims the board at the other end of a connection, which is closed if that fails.

    Parameters
    ----------
    connection : Connection
    name : str
        For messages.
    take : bool
        Also from another host that has it.

    Raises
    ------
    DeviceError
        If another host has it, or it speaks otherwise.
    LinkError
        NO_ANSWER if there is no board.
    """
    try:
        lease, number = secrets.randbelow(1 << 16), secrets.randbelow(1 << 16)
        kind = Kind.TAKE if take else Kind.CLAIM
        question = Datagram(kind=kind, number=number, lease=lease)
        granted, presence, seconds = _negotiate(connection, question, name)
        if not granted:
            raise DeviceError(
                f"{name} is in use by {owner_of(presence)}: wait until that host closes it, or take"
                f" it by --take (--device {name}+take)"
            )
        if not (0 < presence.slots <= MOST_SLOTS and 0 < presence.slot_bytes <= LONGEST_SLOT):
            raise DeviceError(f"{name} must have slots as this version of Slipstick knows them")
        return UdpTransport(connection, name, lease, presence, seconds)
    except BaseException:
        connection.close()
        raise


def _negotiate(
    connection: Connection, question: Datagram, name: str
) -> tuple[bool, Presence, float]:
    """Asks for the board; tells whether it is granted, its presence, and the seconds until then."""
    refusals, reason = 0, ""
    for seconds in _CLAIM_SECONDS:
        sent_at = connection.now()
        try:
            connection.send(question.pack())
            while (left := sent_at + seconds - connection.now()) > 0 and connection.wait(left):
                reply = _reply(connection.receive(), question)
                if reply is not None:
                    return *reply, connection.now() - sent_at
        except BlockingIOError:
            continue
        except OSError as error:
            if isinstance(error, ConnectionRefusedError):
                refusals += 1
            reason = "nothing listens there; " if refusals else f"{error.strerror}; "
            if refusals >= _REFUSALS:
                break
            connection.wait(seconds)
    raise LinkError(
        "NO_ANSWER",
        f"no board answers at {name}: {reason}check its power, the cable and the address (slipstick"
        " devices lists the boards of this network), and that no firewall blocks UDP",
    )


def _reply(payload: bytes, question: Datagram) -> tuple[bool, Presence] | None:
    with suppress(ValueError):
        reply = Datagram.unpack(payload)
        is_ours = (reply.number, reply.lease) == (question.number, question.lease)
        if is_ours and reply.kind in (Kind.GRANTED, Kind.REFUSED):
            return reply.kind is Kind.GRANTED, Presence.unpack(reply.body)
    return None

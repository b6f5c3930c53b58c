"""The datagrams between a host and a board on Ethernet. Needs neither Amaranth nor NumPy.

Each is the payload of one UDP datagram; integers are little endian, addresses as in IP::

    magic u16 | version u8 | kind u8 | number u16 | lease u16 | more of the kind ...

A datagram with another magic, version or kind, or with a length that its kind cannot have, changes
nothing and is not answered.

**Lease.** The board listens to one host at a time, the *owner*: an address, a port, and a number,
the ``lease``, that the host draws at random. CLAIM asks for the board, and is granted if nobody has
it, if the owner was silent for ``LEASE_SECONDS``, or if the same address and port ask. TAKE is
granted always. RELEASE, of the owner, gives the board back. A CLAIM or TAKE that comes again with
the owner's own address, port and lease is granted again and changes nothing. An owner whose lease
ran out stays the owner until somebody claims the board. DATA and POLL of the owner count as signs
of life, and so do CLAIM and TAKE that are granted; DISCOVER does not.

**To the board.** The owner's bytes travel in DATA datagrams, which are numbered from 0 after each
new grant, modulo 65536. The board has ``slots``, each for one datagram of up to ``slot_bytes``
bytes. Datagram n is kept if its number is within ``next .. next + slots - 1`` and its slot is
empty, where ``next`` is the first whose bytes have not all gone on to the link; any other is
dropped. Bytes go on to the link in the order of the numbers. So a lost datagram is sent again
alone, one that comes twice has no effect, and any order will do.

**From the board.** SEND carries the link's answers, numbered in the same way, and says with each
what has arrived: ``next``, and a bit for each of the datagrams from ``next`` on that waits in its
slot. A SEND without bytes has the number of the next one with bytes, and only says what has
arrived. The board sends one when ``next`` went on, after a POLL, and after a DATA that it drops.
Nothing from the board is sent again: the link asks anew for answers that were lost. What the
link gives while nobody is the owner is lost, and so is what waits when a new lease is granted.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from ...link.identity import Identity

PORT = 21328
"""UDP port of a board, "SP" in ASCII."""
MAGIC = 0x4C53
VERSION = 1
NUMBERS = 1 << 16
LEASE_SECONDS = 10
"""A silent owner has the board for so long."""
SLOTS = 4
SLOT_BYTES = 1024
GIGABIT_SLOTS = 8
"""Slots of boards at 1 Gb/s: a host that hears from the board every 60 us keeps the wire busy."""
MOST_SLOTS = 16
LONGEST_SLOT = 1024
LONGEST_SEND = 512
"""Bytes of the link in one datagram from the board."""


def block_rams(slots: int, slot_bytes: int) -> int:
    """Block RAMs of an ECP5 that the slots take, of 2 KiB each."""
    return -(-slots * slot_bytes // 2048)


class Kind(IntEnum):
    """The kind of a datagram."""

    DISCOVER = 1
    """Host, from anywhere: who is there? Answered HERE with the same number and lease."""
    CLAIM = 2
    """Host: answered GRANTED or REFUSED, with the same number and lease. From the grant of a new
    lease on all slots are empty, and numbers begin at 0."""
    TAKE = 3
    """Host: as CLAIM, but it is never refused."""
    RELEASE = 4
    """Owner: not answered."""
    DATA = 5
    """Owner: 1 to ``slot_bytes`` bytes for the link. From others, or with another lease: REFUSED,
    with the same number and lease."""
    POLL = 6
    """Owner: keeps the lease; answered by a SEND. From others: as DATA."""

    HERE = 0x81
    """Board: ``Presence``."""
    GRANTED = 0x82
    """Board: ``Presence``, whose owner is the host itself."""
    REFUSED = 0x83
    """Board: ``Presence``, with the owner that it has."""
    SEND = 0x84
    """Board: ``Arrived``, and 0 to ``LONGEST_SEND`` bytes of the link."""


HEADER = struct.Struct("<HBBHH")
HEADER_BYTES = HEADER.size


@dataclass(frozen=True, kw_only=True)
class Datagram:
    """A datagram; ``body`` is what follows the header."""

    kind: Kind
    number: int = 0
    lease: int = 0
    body: bytes = b""

    def pack(self) -> bytes:
        """The UDP payload."""
        head = HEADER.pack(MAGIC, VERSION, self.kind, self.number, self.lease)
        return head + self.body

    @classmethod
    def unpack(cls, packed: bytes) -> "Datagram":
        """Decodes the payload of a UDP datagram; ValueError if it is none of ours."""
        if len(packed) < HEADER_BYTES:
            raise ValueError(f"a datagram must have {HEADER_BYTES} bytes, not {len(packed)}")
        magic, version, kind, number, lease = HEADER.unpack_from(packed)
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError(f"a datagram must begin with {MAGIC:#x}, {VERSION}")
        return cls(kind=Kind(kind), number=number, lease=lease, body=packed[HEADER_BYTES:])


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Describes a board in HERE, GRANTED and REFUSED.

    Parameters
    ----------
    identity : Identity
    slots, slot_bytes : int
    owned : bool
        A lease is alive.
    owner_address : bytes
        Four bytes of the last owner's IP address; zeros if there was none since the last RELEASE.
    owner_port : int
    """

    identity: Identity
    slots: int
    slot_bytes: int
    owned: bool
    owner_address: bytes
    owner_port: int

    # the owner last, so that the rest is constant in a board
    FORMAT = struct.Struct("<12sBBH4sHxx")

    def pack(self) -> bytes:
        """Its form in a datagram, ``PRESENCE_BYTES`` long."""
        identity = self.identity.pack()
        sizes = (self.slots, self.owned, self.slot_bytes)
        return self.FORMAT.pack(identity, *sizes, self.owner_address, self.owner_port)

    @classmethod
    def unpack(cls, packed: bytes) -> "Presence":
        """Decodes what ``pack`` made; ValueError if the length is wrong."""
        if len(packed) != PRESENCE_BYTES:
            raise ValueError(f"a presence must be {PRESENCE_BYTES} bytes, not {len(packed)}")
        identity, slots, owned, slot_bytes, address, port = cls.FORMAT.unpack(packed)
        return cls(
            identity=Identity.unpack(identity),
            slots=slots,
            slot_bytes=slot_bytes,
            owned=bool(owned & 1),
            owner_address=address,
            owner_port=port,
        )


PRESENCE_BYTES = Presence.FORMAT.size


@dataclass(frozen=True)
class Arrived:
    """The datagrams that have arrived, as a SEND reports them before its bytes.

    Parameters
    ----------
    next : int
        The first DATA whose bytes have not all gone on to the link.
    waiting : int
        Bit i: datagram ``next + i`` is in its slot.
    """

    next: int
    waiting: int

    FORMAT = struct.Struct("<HH")

    def pack(self) -> bytes:
        """Its form in a datagram, ``ARRIVED_BYTES`` long."""
        return self.FORMAT.pack(self.next, self.waiting)

    @classmethod
    def unpack(cls, packed: bytes) -> "Arrived":
        """Decodes the beginning of a SEND's body; ValueError if it is too short."""
        if len(packed) < ARRIVED_BYTES:
            raise ValueError(f"a SEND must have {ARRIVED_BYTES} bytes more, not {len(packed)}")
        return cls(*cls.FORMAT.unpack_from(packed))


ARRIVED_BYTES = Arrived.FORMAT.size

"""The board's end of the datagrams: what the gateware keeps, sends on, and answers."""

from dataclasses import dataclass
from typing import Protocol

from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import (
    LEASE_SECONDS,
    LONGEST_SEND,
    NUMBERS,
    SLOT_BYTES,
    SLOTS,
    Arrived,
    Datagram,
    Kind,
    Presence,
)

Packet = tuple[bytes, int, bytes]
"""A UDP payload with the address and port that it comes from or goes to."""

_TO_BOARD = (Kind.DISCOVER, Kind.CLAIM, Kind.TAKE, Kind.RELEASE, Kind.DATA, Kind.POLL)


class ByteEndpoint(Protocol):
    """The link behind the port."""

    def feed(self, data: bytes) -> bytes:
        """Takes bytes; returns those that it has to send by now."""
        ...


@dataclass(frozen=True)
class Owner:
    """The host that the board listens to."""

    address: bytes
    port: int
    lease: int


class EthernetPort:
    """Answers datagrams over a link by the rules of :mod:`slipstick_rtl.phy.ethernet.datagrams`.

    The link takes all bytes at once, so that only datagrams behind a gap wait in their slots.

    Parameters
    ----------
    endpoint : ByteEndpoint
    identity : Identity
    slots, slot_bytes : int
    lease_seconds : float

    Members
    -------
    owner : Owner, optional
    next : int
        The first DATA whose bytes have not gone on to the link.
    """

    def __init__(
        self,
        endpoint: ByteEndpoint,
        identity: Identity,
        *,
        slots: int = SLOTS,
        slot_bytes: int = SLOT_BYTES,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._endpoint = endpoint
        self._identity = identity
        self._slots = slots
        self._slot_bytes = slot_bytes
        self._lease_seconds = lease_seconds
        self._heard = 0.0
        self._waiting: dict[int, bytes] = {}
        self._number = 0
        self.owner: Owner | None = None
        self.next = 0

    def owned(self, now: float) -> bool:
        """Tells whether a lease is alive at this time, in seconds."""
        return self.owner is not None and now - self._heard < self._lease_seconds

    def receive(self, address: bytes, port: int, payload: bytes, now: float) -> list[Packet]:
        """Takes a UDP payload from an address and port at a time in seconds.

        Returns what the board sends: address, port and UDP payload of each.
        """
        datagram = self._check(payload)
        if datagram is None:
            return []
        sender = Owner(address, port, datagram.lease)
        match datagram.kind:
            case Kind.DISCOVER:
                return [self._reply(Kind.HERE, sender, datagram, now)]
            case Kind.CLAIM | Kind.TAKE:
                return [self._claim(sender, datagram, now)]
        if sender != self.owner:
            if datagram.kind is Kind.RELEASE:
                return []
            return [self._reply(Kind.REFUSED, sender, datagram, now)]
        self._heard = now
        match datagram.kind:
            case Kind.RELEASE:
                self.owner = None
                return []
            case Kind.POLL:
                return self._send(self._endpoint.feed(b""), even_empty=True)
        return self._take(datagram)

    def poll(self, now: float) -> list[Packet]:
        """Asks the link whether it has something to send by now; returns what the board sends.

        Bytes of the link leave for the owner, also after its lease; without one they are lost.
        """
        return self._send(self._endpoint.feed(b""), even_empty=False)

    def _check(self, payload: bytes) -> Datagram | None:
        """A datagram to a board, with a length that its kind may have."""
        try:
            datagram = Datagram.unpack(payload)
        except ValueError:
            return None
        size = len(datagram.body)
        if datagram.kind not in _TO_BOARD:
            return None
        fits = 1 <= size <= self._slot_bytes if datagram.kind is Kind.DATA else size == 0
        return datagram if fits else None

    def _claim(self, sender: Owner, datagram: Datagram, now: float) -> Packet:
        owner, host = self.owner, (sender.address, sender.port)
        same_host = owner is not None and (owner.address, owner.port) == host
        if not (datagram.kind is Kind.TAKE or same_host or not self.owned(now)):
            return self._reply(Kind.REFUSED, sender, datagram, now)
        if sender != owner:
            self.owner = sender
            self._waiting.clear()
            self.next = self._number = 0
        self._heard = now
        return self._reply(Kind.GRANTED, sender, datagram, now)

    def _reply(self, kind: Kind, to: Owner, datagram: Datagram, now: float) -> Packet:
        owner = self.owner
        presence = Presence(
            identity=self._identity,
            slots=self._slots,
            slot_bytes=self._slot_bytes,
            owned=self.owned(now),
            owner_address=bytes(4) if owner is None else owner.address,
            owner_port=0 if owner is None else owner.port,
        )
        reply = Datagram(
            kind=kind, number=datagram.number, lease=datagram.lease, body=presence.pack()
        )
        return to.address, to.port, reply.pack()

    def _take(self, datagram: Datagram) -> list[Packet]:
        """DATA of the owner: into its slot, and all that follow each other on to the link."""
        ahead = (datagram.number - self.next) % NUMBERS
        if ahead >= self._slots or datagram.number in self._waiting:
            return self._send(self._endpoint.feed(b""), even_empty=True)
        self._waiting[datagram.number] = datagram.body
        before, answers = self.next, b""
        while (data := self._waiting.pop(self.next, None)) is not None:
            answers += self._endpoint.feed(data)
            self.next = (self.next + 1) % NUMBERS
        return self._send(answers, even_empty=self.next != before)

    def _send(self, data: bytes, *, even_empty: bool) -> list[Packet]:
        """SENDs to the owner with bytes of the link, or one without if there are none."""
        if self.owner is None:
            return []
        packets = []
        parts = [data[at : at + LONGEST_SEND] for at in range(0, len(data), LONGEST_SEND)]
        for part in parts or ([b""] if even_empty else []):
            numbers = ((self.next + place) % NUMBERS for place in range(self._slots))
            waiting = sum((number in self._waiting) << at for at, number in enumerate(numbers))
            send = Datagram(
                kind=Kind.SEND,
                number=self._number,
                lease=self.owner.lease,
                body=Arrived(self.next, waiting).pack() + part,
            )
            self._number = (self._number + bool(part)) % NUMBERS
            packets.append((self.owner.address, self.owner.port, send.pack()))
        return packets

"""A host of the datagram protocol, over a network that loses, repeats, mixes and damages."""

import random
from collections.abc import Sequence

from cocotb.triggers import ClockCycles
from slipstick_rtl.phy.ethernet.datagrams import (
    ARRIVED_BYTES,
    NUMBERS,
    Arrived,
    Datagram,
    Kind,
    Presence,
)

from ...golden.ethernet import Packet
from .udp_packets import UdpBench, damaged, packet_words

PATIENCE = 400
"""Cycles after which a host asks again."""
ATTEMPTS = 400
HEARING = 5
"""Cycles after which the board has made of a packet what it will."""
EARLY = 2
"""Datagrams beyond the window, as the host knows it, that it sends all the same."""


class Scribe:
    """Writes packets onto the network; some of them wrong, and some by others.

    Parameters
    ----------
    bench : UdpBench
    generator : random.Random
    neighbours : sequence of (address, port)
    slots, slot_bytes : int
        The port's.

    Members
    -------
    refused : int
        Others that the board has refused.
    """

    def __init__(
        self,
        bench: UdpBench,
        generator: random.Random,
        neighbours: Sequence[tuple[bytes, int]],
        *,
        slots: int,
        slot_bytes: int,
    ) -> None:
        self.bench, self.random = bench, generator
        self.slots, self.slot_bytes = slots, slot_bytes
        self._neighbours = neighbours
        self.host: UdpHost | None = None
        self.refused = 0
        bench.on_packet = self._deliver

    def _deliver(self, packet: Packet) -> None:
        found = Datagram.unpack(packet[2])
        if self.host is not None and packet[:2] == self.host.at and found.lease == self.host.lease:
            self.host.hear(found)
        elif found.kind is Kind.REFUSED:
            self.refused += 1

    async def disturb(self, packet: Packet, lease: int) -> None:
        """Something that must not change what comes of the packet."""
        match self.random.randrange(6):
            case 0:
                await self.bench.send(packet, error=True)
            case 1:
                await self.bench.send_words(damaged(self.random, packet_words(packet)))
            case 2:
                await self.bench.send(self._strange(packet[:2], lease))
            case 3:
                await self.bench.send_words(
                    [self.random.getrandbits(32)] * self.random.randint(1, 9)
                )

    def _strange(self, owner: tuple[bytes, int], lease: int) -> Packet:
        at = self.random.choice(self._neighbours)
        kind = self.random.choice([Kind.DISCOVER, Kind.RELEASE, Kind.DATA, Kind.POLL, Kind.SEND])
        if at != owner:
            kind = self.random.choice([kind, Kind.CLAIM])
        other = lease if at != owner else lease ^ 1 << self.random.randrange(16)
        body = self.random.randbytes(20) if kind is Kind.DATA else b""
        number = self.random.randrange(8)
        return (*at, Datagram(kind=kind, number=number, lease=other, body=body).pack())

    def any_words(self) -> list[int]:
        """Words at random, or a packet of which a part is."""
        if self.random.random() < 0.3:
            return [self.random.getrandbits(32) for _ in range(self.random.choice([1, 2, 5, 300]))]
        kind = self.random.choice(list(Kind))
        body = self.random.randbytes(self.random.choice([0, 0, 1, 9, self.slot_bytes]))
        number, lease = self.random.randrange(4), self.random.randrange(3)
        packed = Datagram(kind=kind, number=number, lease=lease, body=body).pack()
        words = packet_words((*self.random.choice(self._neighbours), packed))
        if self.random.random() < 0.4:
            words[self.random.randrange(len(words))] ^= 1 << self.random.randrange(32)
        return words if self.random.random() < 0.7 else damaged(self.random, words)


class UdpHost:
    """Sends bytes until all have arrived, and keeps what the board sends.

    Parameters
    ----------
    scribe : Scribe
    at : (bytes, int)
        Its address and port.
    lease : int

    Members
    -------
    received : bytearray
        The link's bytes, of SENDs whose numbers follow each other.
    """

    def __init__(self, scribe: Scribe, at: tuple[bytes, int], *, lease: int) -> None:
        self._scribe, self._bench, self._random = scribe, scribe.bench, scribe.random
        self.at, self.lease = at, lease
        self.received = bytearray()
        self._expected = 0
        self._next = 0
        """Datagrams that have arrived."""
        self._waiting = 0
        self._answered: list[Datagram] = []
        scribe.host = self

    def hear(self, found: Datagram) -> None:
        """A datagram to this host, with its lease."""
        if found.kind is not Kind.SEND:
            self._answered.append(found)
            return
        arrived = Arrived.unpack(found.body)
        ahead = (arrived.next - self._next) % NUMBERS
        assert ahead <= self._scribe.slots + EARLY, f"{arrived} after {self._next}"
        assert arrived.waiting >> self._scribe.slots == 0
        self._next += ahead
        self._waiting = arrived.waiting
        assert found.number == self._expected % NUMBERS
        data = found.body[ARRIVED_BYTES:]
        self._expected += bool(data)
        self.received += data

    async def discover(self) -> None:
        """Is answered, sooner or later: another answer may have taken its place."""
        await self._ask(Kind.DISCOVER, Kind.HERE)

    async def claim(self, kind: Kind, *, said: bytes = b"") -> None:
        """Asks for the board until it is granted; numbers begin anew.

        The link begins to say something as soon as the board has heard the first time.
        """
        self._next = self._expected = 0
        self.lease = (self.lease + 100) % NUMBERS
        self.received.clear()
        await self._bench.send(self._write(kind))
        await ClockCycles(self._bench.dut.clk, HEARING)
        self._bench.say(said)
        granted = Presence.unpack((await self._ask(kind, Kind.GRANTED)).body)
        assert granted.owned
        assert (granted.owner_address, granted.owner_port) == self.at
        assert (granted.slots, granted.slot_bytes) == (self._scribe.slots, self._scribe.slot_bytes)

    async def carry(self, data: bytes, *, disturb: bool) -> None:
        """Sends bytes until the board says that all have gone on."""
        parts = self._cut(data)
        last, attempts = -1, 0
        while self._next < len(parts):
            attempts = 0 if self._next != last else attempts + 1
            assert attempts < ATTEMPTS, f"{self._next} of {len(parts)} arrive"
            last = self._next
            for number in self._choose(len(parts)):
                packet = self._write(Kind.DATA, number, parts[number])
                if disturb:
                    await self._scribe.disturb(packet, self.lease)
                if self._random.random() < 0.8:
                    await self._bench.send(packet)
            if self._random.random() < 0.2:
                await self._bench.send(self._write(Kind.POLL))
            await ClockCycles(self._bench.dut.clk, self._random.randrange(PATIENCE))
            if attempts:
                await self._bench.send(self._write(Kind.POLL))
                await ClockCycles(self._bench.dut.clk, PATIENCE)
        assert self._next == len(parts)

    async def leave(self, count: int) -> None:
        """Sends some datagrams, and does not look what becomes of them."""
        for ahead in range(count):
            await self._bench.send(self._write(Kind.DATA, self._next + ahead, b"left" * 60))

    def _cut(self, data: bytes) -> list[bytes]:
        parts, largest = [], self._scribe.slot_bytes
        while data:
            size = self._random.choice([1, 2, 3, 4, 5, largest - 1, largest])
            parts.append(data[:size])
            data = data[size:]
        return parts

    def _choose(self, count: int) -> list[int]:
        """Numbers in any order, some twice, some too early or too late."""
        window = range(max(self._next - 1, 0), min(self._next + self._scribe.slots + EARLY, count))
        known = [n for n in window if not self._waiting >> max(n - self._next, 0) & 1]
        numbers = known + [n for n in window if self._random.random() < 0.2]
        self._random.shuffle(numbers)
        return numbers

    def _write(self, kind: Kind, number: int = 0, body: bytes = b"") -> Packet:
        number %= NUMBERS
        packed = Datagram(kind=kind, number=number, lease=self.lease, body=body).pack()
        return (*self.at, packed)

    async def _ask(self, kind: Kind, answer: Kind) -> Datagram:
        for number in range(ATTEMPTS):
            self._answered.clear()
            await self._bench.send(self._write(kind, number))
            for _ in range(10):
                await ClockCycles(self._bench.dut.clk, PATIENCE // 10)
                for found in self._answered:
                    if found.kind is answer:
                        assert found.number <= number
                        return found
        raise AssertionError(f"{kind.name} is not answered {answer.name}")

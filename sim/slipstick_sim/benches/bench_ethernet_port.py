"""EthernetPort against its model: hosts that fight for the board over a network that spoils all."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import (
    ARRIVED_BYTES,
    HEADER_BYTES,
    LONGEST_SEND,
    NUMBERS,
    Arrived,
    Datagram,
    Kind,
)
from slipstick_rtl.phy.ethernet.ethernet_port import EthernetPort

from ..golden import ethernet as golden
from .drivers.udp_host import Scribe, UdpHost
from .drivers.udp_packets import UdpBench, damaged, packet_words
from .registry import Bench, parameters

IDENTITY = Identity("0123456789abcdef", 3, 4, 512)
LEASE_CYCLES = 6000
QUIET_CYCLES = 64
OWNER, OTHER = (bytes([10, 1, 2, 3]), 0x1234), (bytes([192, 168, 0, 77]), 0xFEDC)
NEIGHBOURS = (OWNER, OTHER, (OWNER[0], OTHER[1]), (OTHER[0], OWNER[1]))
REST = 4 * QUIET_CYCLES
"""Cycles without a word after which nothing more is to come."""
STALLS = {"received": 0.2, "sent": 0.3, "i": 0.1, "o": 0.2}
STEPS = 700


def component(*, slots: int, slot_bytes: int) -> EthernetPort:
    """The port under test, with a short lease."""
    return EthernetPort(
        identity=IDENTITY.pack(),
        lease_cycles=LEASE_CYCLES,
        slots=slots,
        slot_bytes=slot_bytes,
        quiet_cycles=QUIET_CYCLES,
    )


BENCH = Bench(
    name="bench_ethernet_port",
    component=component,
    test_module=__name__,
    parameters=({"slots": 2, "slot_bytes": 256},),
    thorough=({"slots": 4, "slot_bytes": 512},),
    timeout_seconds=600,
)


class Link:
    """Stands in for the model's link: keeps the bytes it hears, and holds the bytes it says."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.says = b""

    def feed(self, data: bytes) -> bytes:
        """Notes the bytes; gives what there is to say."""
        self.heard += data
        says, self.says = self.says, b""
        return says


class Pair:
    """The port and its model, step by step: each step ends when the port is at rest."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.bench = UdpBench(dut, seed=seed, stalls=STALLS)
        self.link = Link()
        self.model = golden.EthernetPort(
            self.link, IDENTITY, **parameters(), lease_seconds=LEASE_CYCLES
        )
        self.kinds: dict[Kind, int] = dict.fromkeys(Kind, 0)

    async def step(self) -> None:
        """One thing that happens, to both."""
        expected: list[golden.Packet] = []
        before = self.model.next
        await self._leave_margin()
        match self.random.random():
            case chance if chance < 0.1:
                size = self.random.choice([1, 3, 4, 5, 511, 512, 513, 700])
                self.link.says = self.random.randbytes(size)
                await self.bench.say(self.link.says)
                expected = self.model.poll(self.bench.cycles)
            case chance if chance < 0.11:
                await ClockCycles(self.bench.dut.clk, LEASE_CYCLES + self.random.randrange(300))
            case chance if chance < 0.2:
                await self._spoil()
            case _:
                packet = self._packet()
                await self.bench.send(packet)
                expected = self.model.receive(*packet, self.bench.cycles)
        await self.bench.rest(REST)
        self._compare(expected, before)
        self.bench.packets.clear()
        now = self.bench.cycles
        assert self.bench.dut.owned.value == self.model.owned(now)

    async def _leave_margin(self) -> None:
        """The lease does not end in the cycles that a packet takes."""
        now = self.bench.cycles
        if self.model.owned(now) and not self.model.owned(now + 4 * REST):
            await ClockCycles(self.bench.dut.clk, 4 * REST)

    def _packet(self) -> golden.Packet:
        slots, slot_bytes = parameters()["slots"], parameters()["slot_bytes"]
        owner = self.model.owner
        address, port = self.random.choice(NEIGHBOURS)
        lease = self.random.randrange(3)
        if owner is not None and self.random.random() < 0.85:
            address, port, lease = owner.address, owner.port, owner.lease
        kinds = [Kind.DATA] * 32 + [Kind.POLL] * 4 + [Kind.DISCOVER] * 3 + list(Kind)
        if self.random.random() < (0.4 if owner is None else 0.01):
            kinds = [Kind.CLAIM, Kind.TAKE]
        kind = self.random.choice(kinds)
        number = self.random.choice([0, 0, 0, *range(-1, slots + 2), 0x4000, 0x8000])
        body = b""
        if kind is Kind.DATA or self.random.random() < 0.03:
            sizes = [*range(10), slot_bytes - 1, slot_bytes, slot_bytes + 1, slot_bytes + 5]
            body = self.random.randbytes(self.random.choice(sizes))
        packed = Datagram(
            kind=kind, number=(self.model.next + number) % NUMBERS, lease=lease, body=body
        ).pack()
        if self.random.random() < 0.05:
            place = self.random.randrange(8)
            packed = packed[:place] + self.random.randbytes(1) + packed[place + 1 :]
        if self.random.random() < 0.03:
            packed = packed[: self.random.randrange(9)]
        return address, port, packed

    async def _spoil(self) -> None:
        """A packet that must change nothing."""
        packet = self._packet()
        if self.random.random() < 0.5:
            await self.bench.send(packet, error=True)
        else:
            await self.bench.send_words(damaged(self.random, packet_words(packet)))

    def _compare(self, expected: list[golden.Packet], before: int) -> None:
        found = self.bench.packets
        assert self.bench.heard == self.link.heard
        for packets in (expected, found):
            for packet in packets:
                self.kinds[Datagram.unpack(packet[2]).kind] += packets is expected
        assert _replies(found) == _replies(expected)
        sent, wanted = _sends(found), _sends(expected)
        assert [part for part in sent if part[-1]] == [part for part in wanted if part[-1]]
        # datagrams that go on one after the other may be reported one by one
        most = max(len(wanted), (self.model.next - before) % NUMBERS)
        assert bool(wanted) <= len(sent) <= most, (sent, wanted)
        if sent:
            assert sent[-1][1:4] == wanted[-1][1:4], (sent[-1], wanted[-1])


def _replies(packets: list[golden.Packet]) -> list[tuple[bytes, int, Datagram]]:
    unpacked = [(address, port, Datagram.unpack(data)) for address, port, data in packets]
    return [packet for packet in unpacked if packet[2].kind is not Kind.SEND]


def _sends(
    packets: list[golden.Packet],
) -> list[tuple[int, int, tuple[bytes, int], Arrived, bytes]]:
    """Number, lease, receiver, what has arrived, and bytes of each SEND."""
    unpacked = [(address, port, Datagram.unpack(data)) for address, port, data in packets]
    return [
        (found.number, found.lease, (address, port), Arrived.unpack(found.body), found.body[4:])
        for address, port, found in unpacked
        if found.kind is Kind.SEND
    ]


@cocotb.test()
async def does_what_the_model_does(dut: Any) -> None:
    pair = Pair(dut, 1)
    await pair.bench.start()
    for _ in range(STEPS):
        await pair.step()
    dut._log.info(f"{pair.kinds}, {len(pair.bench.heard)} bytes, {pair.bench.cycles} cycles")
    for kind in (Kind.HERE, Kind.GRANTED, Kind.REFUSED, Kind.SEND):
        assert pair.kinds[kind] > 4, pair.kinds


async def _falter(bench: UdpBench, data: bytes) -> None:
    """The link says something, with pauses that are just about the end of a packet."""
    generator = random.Random(len(data))
    while data:
        size = generator.choice([1, 2, 7, 100, 512, 513])
        await bench.say(data[:size])
        data = data[size:]
        await ClockCycles(bench.dut.clk, QUIET_CYCLES + generator.randint(-4, 4))


@cocotb.test()
@cocotb.parametrize(busy=["sent", "o", "none"])
async def carries_all_bytes_while_others_disturb(dut: Any, busy: str) -> None:
    """A host's bytes come once and in order, whatever the network and strangers do."""
    seed = {"sent": 20, "o": 30, "none": 40}[busy]
    bench = UdpBench(dut, seed=seed, stalls={**STALLS, busy: 0.9})
    await bench.start()
    scribe = Scribe(bench, random.Random(seed), NEIGHBOURS, **parameters())
    said = random.Random(seed + 1).randbytes(6000)
    owner = UdpHost(scribe, OWNER, lease=7)
    await owner.claim(Kind.CLAIM)
    saying = cocotb.start_soon(_falter(bench, said))
    data = random.Random(seed + 2).randbytes(6000)
    await owner.carry(data, disturb=True)
    assert bench.heard == data
    await saying
    await bench.rest(REST)
    assert owner.received == said
    assert scribe.refused > 0


@cocotb.test()
async def changes_hands_amid_the_traffic(dut: Any) -> None:
    """Checks that the old owner's streams are cut somewhere, and the next owner's come whole."""
    bench = UdpBench(dut, seed=50, stalls={**STALLS, "o": 0.8, "sent": 0.7})
    await bench.start()
    generator = random.Random(50)
    scribe = Scribe(bench, generator, NEIGHBOURS, **parameters())
    for lease in range(1, 25):
        host = UdpHost(scribe, generator.choice(NEIGHBOURS), lease=lease)
        said = generator.randbytes(generator.choice([3, 511, 900]))
        await host.claim(Kind.TAKE, said=said)
        # an answer of the board shows that the old owner's bytes have stopped but for one
        stopped = len(bench.heard)
        data = bytes([lease]) * 50 + generator.randbytes(generator.randrange(1, 800))
        await host.carry(data, disturb=False)
        assert bench.heard.endswith(data)
        assert len(bench.heard) - len(data) <= stopped + 1
        await bench.rest(REST)
        assert host.received == said
        # some that the next owner cuts off
        await host.leave(generator.randrange(3))
        saying = bench.say(generator.randbytes(generator.choice([0, 1, 30, 512, 512, 600, 1024])))
        discover = Datagram(kind=Kind.DISCOVER, lease=lease).pack()
        while not saying.done():
            await bench.send((*generator.choice(NEIGHBOURS), discover))
        await ClockCycles(dut.clk, generator.choice([1, 1, 30, 2 * QUIET_CYCLES]))


@cocotb.test()
async def changes_hands_as_a_send_begins(dut: Any) -> None:
    """In each of the cycles around its beginning: it is the old owner's, and comes whole."""
    bench = UdpBench(dut, seed=90, stalls={"sent": 0.85})
    await bench.start()
    generator = random.Random(90)
    scribe = Scribe(bench, generator, NEIGHBOURS, **parameters())
    for early in range(20):
        await UdpHost(scribe, OWNER, lease=early).claim(Kind.TAKE)
        saying = bench.say(generator.randbytes(LONGEST_SEND))
        await ClockCycles(dut.clk, LONGEST_SEND - early)
        host, said = UdpHost(scribe, OTHER, lease=early), generator.randbytes(LONGEST_SEND + 20)
        bench.packets.clear()
        cocotb.start_soon(host.claim(Kind.TAKE, said=b""))
        await saying
        await ClockCycles(dut.clk, 20)
        await bench.say(said)
        await bench.rest(REST)
        assert host.received.endswith(said)
        sizes = [len(packet[2]) for packet in bench.packets if packet[:2] == OWNER]
        assert set(sizes) <= {HEADER_BYTES + ARRIVED_BYTES + LONGEST_SEND}


@cocotb.test()
async def keeps_a_lease_that_is_used(dut: Any) -> None:
    bench = UdpBench(dut, seed=100, stalls={})
    await bench.start()
    kinds = {Kind.DATA: 1, Kind.POLL: 1, Kind.CLAIM: 1, Kind.TAKE: 1, Kind.DISCOVER: 0}
    for kind, keeps in kinds.items():
        for sent in (Kind.TAKE, kind):
            body = b"x" if sent is Kind.DATA else b""
            await bench.send((*OWNER, Datagram(kind=sent, lease=1, body=body).pack()))
            await ClockCycles(dut.clk, LEASE_CYCLES * 2 // 3)
        assert dut.owned.value == keeps, kind
        await ClockCycles(dut.clk, LEASE_CYCLES)
        assert dut.owned.value == 0


@cocotb.test()
async def says_nothing_to_nobody(dut: Any) -> None:
    """At whatever moment an owner leaves, a SEND goes to a host and with the lease of that host."""
    bench = UdpBench(dut, seed=80, stalls={"sent": 0.1})
    await bench.start()
    generator = random.Random(80)
    leases = {OWNER: 1, OTHER: 2}
    for _ in range(400):
        host = generator.choice([OWNER, OTHER])
        kinds = [Kind.TAKE, Kind.DATA, generator.choice([Kind.POLL, Kind.DATA, Kind.RELEASE])]
        for number, kind in enumerate([*kinds, Kind.RELEASE], -1):
            body = b"byte"[: generator.randint(1, 4)] if kind is Kind.DATA else b""
            number = max(number, 0)
            packed = Datagram(kind=kind, number=number, lease=leases[host], body=body).pack()
            await bench.send((*host, packed))
            await ClockCycles(dut.clk, generator.randrange(12))
        bench.say(b"says"[: generator.randrange(4)])
    await bench.rest(REST)
    sends = [packet for packet in bench.packets if Datagram.unpack(packet[2]).kind is Kind.SEND]
    assert len(sends) > 100
    for address, port, packed in bench.packets:
        found = Datagram.unpack(packed)
        assert leases.get((address, port)) == found.lease, (address, port, found)


@cocotb.test()
async def lives_through_any_words(dut: Any) -> None:
    bench = UdpBench(dut, seed=60, stalls={"sent": 0.5, "o": 0.5})
    await bench.start()
    generator = random.Random(60)
    scribe = Scribe(bench, generator, NEIGHBOURS, **parameters())
    host = UdpHost(scribe, OWNER, lease=9)
    for _ in range(8):
        for _ in range(150):
            await bench.send_words(scribe.any_words(), error=generator.random() < 0.3)
        await host.discover()
        await host.claim(Kind.TAKE)
        del bench.heard[:]
        await bench.rest(REST)
        tail = len(bench.heard)
        data = generator.randbytes(1500)
        await host.carry(data, disturb=False)
        assert bench.heard[tail:] == data


@cocotb.test()
async def rests_two_cycles_between_packets(dut: Any) -> None:
    """Whatever waits behind it."""
    bench = UdpBench(dut, seed=70, stalls={"sent": 1.0, "o": 1.0})
    await bench.start()
    discover = (*OTHER, Datagram(kind=Kind.DISCOVER).pack())
    claim = (*OWNER, Datagram(kind=Kind.CLAIM).pack())
    await bench.send(claim)
    packets = [discover]
    for number in range(3 * parameters()["slots"]):
        body = bytes(parameters()["slot_bytes"])
        packets.append((*OWNER, Datagram(kind=Kind.DATA, number=number, body=body).pack()))
    words = [packet_words(packet) for packet in packets]
    await ClockCycles(dut.clk, 4)
    since = bench.cycles
    for packet in words:
        await bench.send_words(packet)
    assert bench.cycles - since == sum(map(len, words)) + 2 * (len(words) - 1)

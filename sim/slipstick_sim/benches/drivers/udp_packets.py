"""UDP packets into and out of a datagram port, and the link's bytes behind it."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.task import Task
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.phy.ethernet.packet_words import PORT_AND_LENGTH, RECEIVED_WORD, SENT_WORD

from ...golden.ethernet import Packet
from .streams import Consumer, Producer, pack, start, unpack

FOREVER = 10**9


def packet_words(packet: Packet, length: int | None = None) -> list[int]:
    """The data words of a packet, with any length written into it."""
    address, port, payload = packet
    length = len(payload) if length is None else length
    head = [
        int.from_bytes(address, "big"),
        pack(PORT_AND_LENGTH, {"port": port, "length": length}),
    ]
    parts = (payload[at : at + 4] for at in range(0, len(payload), 4))
    return head + [int.from_bytes(part, "little") for part in parts]


class UdpBench:
    """The port's four streams, with random stalls.

    Parameters
    ----------
    dut : cocotb handle
    seed : int
    stalls : mapping
        Probability of a stall, by stream; 0 for those that are not named.

    Members
    -------
    packets : list of Packet
        Whole packets that the board has sent.
    heard : bytearray
        Bytes that have come to the link.
    cycles : int
        Since the start.
    on_packet : callable, optional
        Called with each packet as it ends.
    """

    def __init__(self, dut: Any, *, seed: int, stalls: dict[str, float]) -> None:
        self.dut = dut
        self._receiving = Producer(dut, "received", seed=seed, stall=stalls.get("received", 0))
        self._saying = Producer(dut, "i", seed=seed + 1, stall=stalls.get("i", 0))
        self._sent = Consumer(dut, "sent", seed=seed + 2, stall=stalls.get("sent", 0))
        self._heard = Consumer(dut, "o", seed=seed + 3, stall=stalls.get("o", 0))
        self.packets: list[Packet] = []
        self.heard = bytearray()
        self.cycles = 0
        self.active = 0
        self.on_packet: Callable[[Packet], None] = lambda packet: None

    async def start(self) -> None:
        """Resets the port, and listens to what it sends from then on."""
        await start(self.dut)
        for task in (self._count(), self._collect_packets(), self._collect_bytes()):
            cocotb.start_soon(task)

    async def send_words(self, words: list[int], *, error: bool = False) -> None:
        """A packet of any words, the last of them marked."""
        last = len(words) - 1
        await self._receiving.send(
            pack(RECEIVED_WORD, {"data": word, "last": at == last, "error": error and at == last})
            for at, word in enumerate(words)
        )

    async def send(self, packet: Packet, *, error: bool = False, length: int | None = None) -> None:
        """A packet to the board; returns with its last word."""
        await self.send_words(packet_words(packet, length), error=error)

    def say(self, data: bytes) -> Task[None]:
        """Bytes of the link, in the background."""
        return self._saying.start(data)

    async def rest(self, cycles: int) -> None:
        """Waits until nothing has left the port for so many cycles."""
        self.active = self.cycles
        while self.cycles - self.active < cycles:
            await ClockCycles(self.dut.clk, self.active + cycles - self.cycles)

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.cycles += 1

    async def _collect_packets(self) -> None:
        words: list[int] = []
        while True:
            (payload,) = await self._sent.receive(1, timeout_cycles=FOREVER)
            self.active = self.cycles
            word = unpack(SENT_WORD, payload)
            words.append(word["data"])
            if word["last"]:
                self.packets.append(_packet(words))
                self.on_packet(self.packets[-1])
                words = []

    async def _collect_bytes(self) -> None:
        while True:
            self.heard += bytes(await self._heard.receive(1, timeout_cycles=FOREVER))
            self.active = self.cycles


def _packet(words: list[int]) -> Packet:
    address, second, *payload = words
    field = unpack(PORT_AND_LENGTH, second)
    data = b"".join(word.to_bytes(4, "little") for word in payload)
    assert len(payload) == -(-field["length"] // 4), f"{len(payload)} words: {field}"
    return address.to_bytes(4, "big"), field["port"], data[: field["length"]]


def damaged(generator: random.Random, words: list[int]) -> list[int]:
    """The words of a packet with a length or a number of words that cannot be right."""
    match generator.randrange(4):
        case 0:
            return words[: generator.randrange(1, len(words))]
        case 1:
            return words + [generator.getrandbits(32) for _ in range(generator.randint(1, 300))]
        case 2:
            # comes again where a counter of the words could begin anew
            filled = words + [0] * (generator.choice([128, 256, 512]) - len(words))
            return filled + words
    wrong = words[1] ^ 1 << generator.randrange(18, 32)
    return [words[0], wrong, *words[2:]]

"""Spi against its model: controllers of any rate and phase, that stop early, glitch and lie."""

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, Timer
from slipstick_rtl.phy.spi import Spi
from slipstick_rtl.phy.spi_protocol import (
    DEVICE_HEADER_BYTES,
    FIRST_SLOT,
    MINIMUM_SCK_CYCLES,
    POSITIONS,
    TRAILER_BYTES,
    DeviceHeader,
    HostHeader,
    Trailer,
)

from ..golden.spi import SpiPeripheral
from .drivers.streams import CLOCK_PERIOD_NS, Consumer, Producer, start
from .registry import Bench, parameters


def component(*, receive_depth: int, replay_bits: int) -> Spi:
    """The peripheral under test."""
    return Spi(receive_depth=receive_depth, replay_bits=replay_bits)


BENCH = Bench(
    name="bench_spi",
    component=component,
    test_module=__name__,
    parameters=({"receive_depth": 4, "replay_bits": 4}, {"receive_depth": 32, "replay_bits": 6}),
)
CYCLE_PS = 1000 * CLOCK_PERIOD_NS
FASTEST = float(MINIMUM_SCK_CYCLES)
MOST_TRANSFERS = 400
SETUP_PS = CYCLE_PS - 100
"""Picoseconds before its edge at which the controller already sees the bit at the highest rate: all
but a hundredth of the cycle that is left for pins and wires."""


def ready_slots() -> Iterator[int]:
    """Yields the slots of each transfer, from none to more than the device can fill."""
    depth = 1 << parameters()["replay_bits"]
    generator = random.Random(77)
    yield from (0, 1, depth, depth + 3)
    while True:
        yield generator.randrange(depth + 5)


class Controller:
    """The other end of the pins: SCK of any period and phase, in units of the device's clock."""

    def __init__(self, dut: Any, *, period: float, seed: int) -> None:
        self._dut = dut
        self._random = random.Random(seed)
        self._period = period
        dut.sck.value = dut.mosi.value = 0
        dut.chip_select_n.value = 1

    async def transfer(self, data: Iterable[int], bits: int | None = None) -> bytes:
        """Clocks bytes out under one chip select, or only the first bits of them; returns the
        whole bytes that came back."""
        sent = [byte >> place & 1 for byte in data for place in range(7, -1, -1)][:bits]
        await self._wait(self._random.uniform(4, 6))
        self._dut.chip_select_n.value = 0
        await self._wait(self._random.uniform(2, 6))
        received = await self._clock(sent)
        await self._wait(self._random.uniform(1.5, 6))
        self._dut.chip_select_n.value = 1
        whole = [received[first : first + 8] for first in range(0, len(received) - 7, 8)]
        return bytes(int("".join(map(str, byte)), 2) for byte in whole)

    async def glitch(self, cycles: float) -> None:
        """A pulse of the chip select, without a clock."""
        self._dut.chip_select_n.value = 0
        await self._wait(cycles)
        self._dut.chip_select_n.value = 1
        await self._wait(4)

    async def _clock(self, sent: Iterable[int]) -> list[int]:
        received = []
        # either level for over a cycle, and the rest of the period as it comes
        high = self._random.uniform(1.1, self._period - 1.1)
        for bit in sent:
            self._dut.mosi.value = bit
            await Timer(round(CYCLE_PS * (self._period - high)) - SETUP_PS, unit="ps")
            early = int(self._dut.miso.value)
            await Timer(SETUP_PS, unit="ps")
            received.append(int(self._dut.miso.value))
            assert received[-1] == early, "MISO changes less than a cycle before SCK rises"
            self._dut.sck.value = 1
            await self._wait(high)
            self._dut.sck.value = 0
        return received

    async def _wait(self, cycles: float) -> None:
        await Timer(round(CYCLE_PS * cycles), unit="ps")


class Host:
    """Acts as a driver, with all that a driver may know; its streams are byte strings."""

    def __init__(self, controller: Controller, data: bytes) -> None:
        self.controller = controller
        self.data = data
        self.taken = 0
        self.received = bytearray()
        self.cuts = 0

    async def exchange(self, count: int, slots: int, bits: int | None = None) -> None:
        """A transfer with up to ``count`` bytes, which may end after so many bits."""
        offered = self.data[self.taken : self.taken + min(count, slots)]
        received = len(self.received) % POSITIONS
        header = HostHeader(self.taken % POSITIONS, received, len(offered), slots)
        filled = header.pack() + b"\xff" + offered.ljust(slots, b"\xff") + bytes(TRAILER_BYTES)
        answer = await self.controller.transfer(filled, bits)
        self._check_header(answer)
        end = FIRST_SLOT + slots
        trailer = Trailer.unpack(answer[end : end + TRAILER_BYTES])
        if bits is not None and bits < 8 * len(filled):
            self.cuts += 1
            await self._ask()
            return
        assert trailer is not None, answer.hex(" ")
        self.taken += (trailer.taken - self.taken) % POSITIONS
        given = (trailer.sent - received) % POSITIONS
        assert given <= slots
        self.received += answer[FIRST_SLOT : FIRST_SLOT + given]

    async def _ask(self) -> None:
        answer = await self.controller.transfer(bytes(DEVICE_HEADER_BYTES))
        header = self._check_header(answer)
        assert header is not None
        self.taken += (header.taken - self.taken) % POSITIONS

    def _check_header(self, answer: bytes) -> DeviceHeader | None:
        if len(answer) < DEVICE_HEADER_BYTES:
            return None
        header = DeviceHeader.unpack(answer[:DEVICE_HEADER_BYTES])
        assert header is not None, answer.hex(" ")
        assert header.depth_bits == parameters()["replay_bits"]
        assert (header.written - header.released) % POSITIONS <= 1 << header.depth_bits
        assert (header.released - len(self.received)) % POSITIONS in (0, *self._unreleased(header))
        return header

    def _unreleased(self, header: DeviceHeader) -> range:
        """Returns the differences, modulo POSITIONS, by which a device may lag behind the host."""
        return range(POSITIONS - (1 << header.depth_bits), POSITIONS)


async def begin(dut: Any, *, period: float = FASTEST, seed: int = 1) -> Controller:
    """Starts the device, deselected."""
    controller = Controller(dut, period=period, seed=seed)
    await start(dut)
    await ClockCycles(dut.clk, 3)
    return controller


def random_bytes(seed: int, count: int) -> bytes:
    """Any bytes."""
    return random.Random(seed).randbytes(count)


@cocotb.test()
@cocotb.parametrize(
    (("period", "stall"), [(FASTEST, 0.0), (4.37, 0.99), (9.1, 0.9)]), ("cut", [0.0, 0.3])
)
async def both_streams_arrive_whole(dut: Any, period: float, stall: float, cut: float) -> None:
    generator = random.Random(10)
    size = 3 << parameters()["replay_bits"]
    out, back = random_bytes(1, size), random_bytes(2, size)
    producer = Producer(dut, "i", seed=3, stall=stall)
    consumer = Consumer(dut, "o", seed=4, stall=stall)
    host = Host(await begin(dut, period=period), out)
    producer.start(back)
    received = consumer.start(size, timeout_cycles=2_000_000)
    for slots in itertools.islice(ready_slots(), MOST_TRANSFERS):
        whole = 8 * (FIRST_SLOT + slots + TRAILER_BYTES)
        bits = generator.randrange(whole) if generator.random() < cut else None
        await host.exchange(generator.randrange(slots + 1), slots, bits)
        if host.taken == len(host.received) == size:
            break
        assert len(host.received) <= size
    assert bytes(host.received) == back
    assert bytes(await received) == out
    assert (host.cuts > 0) == (cut > 0)
    await consumer.expect_silence(100)


@cocotb.test()
@cocotb.parametrize(period=[FASTEST, 6.6])
async def transfers_are_as_the_model_says(dut: Any, period: float) -> None:
    """Whole and cut, right and wrong headers, full and empty queues."""
    generator = random.Random(20)
    depth = parameters()["receive_depth"]
    model = SpiPeripheral(depth, parameters()["replay_bits"])
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    controller = await begin(dut, period=period, seed=2)
    taken = received = 0
    for number, slots in enumerate(itertools.islice(ready_slots(), 48)):
        data = generator.randbytes(generator.randrange(model.room + 1))
        await producer.send(data)
        assert model.send(data) == len(data)
        count = generator.randrange(slots + 1)
        header = HostHeader(taken, received, count, slots).pack()
        if number % 2:
            header = spoilt(header, number // 2 % 4, generator)
        sent = header + generator.randbytes(1 + slots + TRAILER_BYTES + generator.randrange(3))
        if generator.random() < 0.3:
            sent = sent[: generator.randrange(len(sent))]
        answer = await controller.transfer(sent)
        expected = model.transfer(sent)
        assert answer == expected, f"{answer.hex(' ')} must be {expected.hex(' ')}"
        taken, received = model.positions
        if generator.random() < 0.5:
            assert bytes(await consumer.receive(len(model.received))) == model.received
            model.received.clear()
        await ClockCycles(dut.clk, 5)


def spoilt(header: bytes, kind: int, generator: random.Random) -> bytes:
    """A header that breaks one rule, by little or by much."""
    parts = HostHeader.unpack(header)
    assert parts is not None
    if kind == 0:
        place = generator.randrange(8 * len(header))
        return (int.from_bytes(header) ^ 1 << place).to_bytes(len(header))
    wrong = generator.choice((1, 1 << 8, POSITIONS - 1, generator.randrange(1, POSITIONS)))
    position, received, count = parts.position, parts.received, parts.count
    if kind == 1:
        position = (position + wrong) % POSITIONS
    elif kind == 2:
        received = (received + wrong) % POSITIONS
    else:
        count = parts.slots + generator.randrange(1, 9)
    return HostHeader(position, received, count, parts.slots).pack()


@cocotb.test()
async def glitches_and_bits_cut_off_do_no_harm(dut: Any) -> None:
    generator = random.Random(30)
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    controller = await begin(dut, seed=3)
    out, back = random_bytes(5, 12), random_bytes(6, 12)
    host = Host(controller, out)
    await producer.send(back)
    received = consumer.start(len(out), timeout_cycles=1_000_000)
    for first in range(0, len(out), 3):
        await controller.glitch(generator.uniform(0.05, 3))
        # any bits, but not a header: its start is wrong
        await controller.transfer(b"\x00" + generator.randbytes(12), generator.randrange(1, 100))
        await host.exchange(3, 3)
        assert host.taken == len(host.received) == first + 3
    assert bytes(host.received) == back
    assert bytes(await received) == out


@cocotb.test()
async def a_full_transfer_fills_the_wire(dut: Any) -> None:
    """The queue of bytes to be sent is filled anew while they are sent."""
    slots = 1 << parameters()["replay_bits"]
    transfers = 3
    size = slots * transfers
    out, back = random_bytes(7, size), random_bytes(8, size)
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    host = Host(await begin(dut, seed=4), out)
    producer.start(back)
    received = consumer.start(size, timeout_cycles=1_000_000)
    await ClockCycles(dut.clk, slots + 5)
    for _ in range(transfers):
        await host.exchange(slots, slots)
    assert host.taken == size
    assert bytes(host.received) == back
    assert bytes(await received) == out

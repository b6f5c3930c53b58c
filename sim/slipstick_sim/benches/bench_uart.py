"""Uart against the model of a serial line: other ends that are slow, fast, broken or in a loop."""

import random
from collections.abc import Iterable
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from slipstick_rtl.phy.uart import Uart
from slipstick_rtl.phy.uart_rates import RATE_TOLERANCE

from ..golden.serial_line import bits_of, bytes_of, levels_of
from .drivers.streams import CLOCK_PERIOD_NS, Consumer, Producer, start
from .registry import Bench, parameters


def component(*, divisor: int, depth: int) -> Uart:
    """The UART under test."""
    return Uart(divisor=divisor, depth=depth)


BENCH = Bench(
    name="bench_uart",
    component=component,
    test_module=__name__,
    parameters=({"divisor": 8, "depth": 4}, {"divisor": 13, "depth": 16}),
)
SLOWEST, FASTEST = 1 + RATE_TOLERANCE, 1 - RATE_TOLERANCE


def random_bytes(seed: int, count: int) -> list[int]:
    """Bytes with more of those that have long runs of one level than chance would give."""
    generator = random.Random(seed)
    return [generator.choice([0x00, 0xFF, 0x55, generator.randrange(256)]) for _ in range(count)]


async def put(dut: Any, bits: Iterable[int], period: float = 1.0) -> None:
    """Drives ``rx``; ``period`` is the length of a bit, 1 as the device has it."""
    picoseconds = round(1000 * CLOCK_PERIOD_NS * parameters()["divisor"] * period)
    for bit in bits:
        dut.rx.value = bit
        await Timer(picoseconds, unit="ps")


async def send(dut: Any, data: Iterable[int], *, period: float, stall: float, seed: int) -> None:
    """Sends bytes to ``rx``, at times after a pause of any length."""
    generator = random.Random(seed)
    for byte in data:
        await put(dut, bits_of(byte), period)
        if generator.random() < stall:
            await Timer(generator.randrange(1, 200_000), unit="ps")


async def count_pulses(dut: Any, name: str, counts: dict[str, int]) -> None:
    """Counts the cycles in which an output is high."""
    counts[name] = 0
    while True:
        await RisingEdge(dut.clk)
        counts[name] += int(getattr(dut, name).value)


async def begin(dut: Any) -> dict[str, int]:
    """Starts the device with its line at rest; returns the pulses that are counted from then."""
    dut.rx.value = 1
    counts: dict[str, int] = {}
    await start(dut)
    for name in ("framing_error", "overflow"):
        cocotb.start_soon(count_pulses(dut, name, counts))
    await ClockCycles(dut.clk, 5)
    return counts


@cocotb.test()
@cocotb.parametrize(period=[FASTEST, 1.0, SLOWEST], stall=[0.0, 0.5])
async def receives_at_rates_within_the_tolerance(dut: Any, period: float, stall: float) -> None:
    Producer(dut, "i")
    consumer = Consumer(dut, "o", seed=3, stall=0.7)
    counts = await begin(dut)
    data = random_bytes(1, 150)
    cocotb.start_soon(send(dut, data, period=period, stall=stall, seed=2))
    assert await consumer.receive(len(data)) == data
    await consumer.expect_silence(20 * parameters()["divisor"])
    assert counts == {"framing_error": 0, "overflow": 0}


@cocotb.test()
async def sends_as_the_model_without_a_pause(dut: Any) -> None:
    divisor = parameters()["divisor"]
    Consumer(dut, "o")
    producer = Producer(dut, "i")
    await begin(dut)
    data = random_bytes(4, 100)
    producer.start(data)
    while dut.tx.value == 1:
        await RisingEdge(dut.clk)
    levels = []
    for _ in range(len(data) * 10 * divisor):
        levels.append(int(dut.tx.value))
        await RisingEdge(dut.clk)
    assert levels == levels_of(data, divisor)
    assert bytes_of(levels, divisor) == (data, 0)
    for _ in range(20 * divisor):
        assert dut.tx.value == 1
        await RisingEdge(dut.clk)


@cocotb.test()
@cocotb.parametrize(producer_stall=[0.0, 0.99], consumer_stall=[0.0, 0.95])
async def hears_itself(dut: Any, producer_stall: float, consumer_stall: float) -> None:
    producer = Producer(dut, "i", seed=5, stall=producer_stall)
    consumer = Consumer(dut, "o", seed=6, stall=consumer_stall)
    counts = await begin(dut)

    async def connect_lines() -> None:
        while True:
            await RisingEdge(dut.clk)
            dut.rx.value = int(dut.tx.value)

    cocotb.start_soon(connect_lines())
    data = random_bytes(7, 150)
    producer.start(data)
    assert await consumer.receive(len(data)) == data
    assert counts == {"framing_error": 0, "overflow": 0}


@cocotb.test()
async def drops_bytes_without_a_stop_bit_and_no_others(dut: Any) -> None:
    Producer(dut, "i")
    consumer = Consumer(dut, "o", seed=8, stall=0.2)
    counts = await begin(dut)
    generator = random.Random(9)
    data = random_bytes(10, 100)
    broken = [generator.random() < 0.3 for _ in data]
    kept = [byte for byte, lost in zip(data, broken, strict=True) if not lost]

    async def send_some_broken() -> None:
        for byte, lost in zip(data, broken, strict=True):
            # a line that stays low for any time is one error, and its end is no start bit
            tail = [0] * generator.randrange(1, 15) + [1, 1] if lost else [1]
            await put(dut, [*bits_of(byte)[:-1], *tail])

    cocotb.start_soon(send_some_broken())
    assert await consumer.receive(len(kept)) == kept
    await consumer.expect_silence(60 * parameters()["divisor"])
    assert counts == {"framing_error": sum(broken), "overflow": 0}


@cocotb.test()
async def takes_short_pulses_for_noise(dut: Any) -> None:
    Producer(dut, "i")
    consumer = Consumer(dut, "o")
    counts = await begin(dut)
    for tenths in (1, 2, 3):
        await put(dut, [0], tenths / 10)
        await put(dut, [1], 3.3)
    await consumer.expect_silence(15 * parameters()["divisor"])
    cocotb.start_soon(put(dut, bits_of(0xA5)))
    assert await consumer.receive(1) == [0xA5]
    assert counts == {"framing_error": 0, "overflow": 0}


@cocotb.test()
async def keeps_the_oldest_bytes_if_no_one_takes_them(dut: Any) -> None:
    depth = parameters()["depth"]
    Producer(dut, "i")
    consumer = Consumer(dut, "o")
    counts = await begin(dut)
    data = random_bytes(11, depth + 5)
    await send(dut, data, period=1.0, stall=0.0, seed=0)
    assert await consumer.receive(depth) == data[:depth]
    await consumer.expect_silence(20)
    assert counts == {"framing_error": 0, "overflow": 5}


@cocotb.test()
async def is_as_quick_as_it_says(dut: Any) -> None:
    Producer(dut, "i")
    Consumer(dut, "o")
    await begin(dut)
    await RisingEdge(dut.clk)
    cocotb.start_soon(put(dut, bits_of(0x5A)))
    cycles = -1  # the next edge is the first that could see the start bit
    while dut.o__valid.value == 0:
        await RisingEdge(dut.clk)
        cycles += 1
    assert cycles == component(**parameters()).receive_latency

"""StreamQueue against a list: order, level, and full speed."""

from typing import Any

import cocotb
from amaranth.hdl import unsigned
from cocotb.triggers import RisingEdge
from slipstick_rtl.primitives.stream_queue import StreamQueue

from .drivers.streams import Consumer, Producer, start
from .registry import Bench, parameters


def component(*, width: int, depth: int) -> StreamQueue:
    """The queue under test."""
    return StreamQueue(shape=unsigned(width), depth=depth)


BENCH = Bench(
    name="bench_stream_queue",
    component=component,
    test_module=__name__,
    parameters=(
        {"width": 8, "depth": 4},
        {"width": 40, "depth": 19},
        {"width": 8, "depth": 3},
    ),
)


async def some_follows_level(dut: Any) -> None:
    """``some`` is a register of its own, and says what the level does, in every cycle."""
    while True:
        await RisingEdge(dut.clk)
        level = dut.level.value.to_unsigned()
        assert dut.some.value == (level > 0), f"some is {dut.some.value} at level {level}"


@cocotb.test()
@cocotb.parametrize(producer_stall=[0.0, 0.3, 0.8], consumer_stall=[0.0, 0.3, 0.8])
async def keeps_order(dut: Any, producer_stall: float, consumer_stall: float) -> None:
    width = parameters()["width"]
    payloads = [number * 0x9E3779B1 % (1 << width) for number in range(300)]
    producer = Producer(dut, "i", seed=1, stall=producer_stall)
    consumer = Consumer(dut, "o", seed=2, stall=consumer_stall)
    await start(dut)
    cocotb.start_soon(some_follows_level(dut))
    producer.start(payloads)
    assert await consumer.receive(len(payloads)) == payloads
    await consumer.expect_silence(10)


@cocotb.test()
async def holds_its_depth(dut: Any) -> None:
    depth = parameters()["depth"]
    producer = Producer(dut, "i")
    consumer = Consumer(dut, "o")
    await start(dut)
    await producer.send(range(depth))
    await RisingEdge(dut.clk)
    assert dut.i__ready.value == 0
    assert dut.level.value == depth
    assert await consumer.receive(depth) == list(range(depth))


@cocotb.test()
async def moves_a_payload_a_cycle(dut: Any) -> None:
    producer = Producer(dut, "i")
    consumer = Consumer(dut, "o")
    await start(dut)
    producer.start(number % 256 for number in range(1000))
    await consumer.receive(100)
    await consumer.receive(800, timeout_cycles=801)

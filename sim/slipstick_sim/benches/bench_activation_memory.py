"""The activation memory against an array of bytes: post-processor and link at the same time."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.latencies import ACTIVATION_READ_LATENCY
from slipstick_rtl.memory.activation_memory import ActivationMemory
from slipstick_rtl.memory.port_arbiter import byte_write_layout, slice_write_layout, write_layout

from .drivers.streams import Producer, pack, start
from .registry import Bench, parameters

_BYTES = 1 << 10


def make(**shape: Any) -> ActivationMemory:
    """The memory of a configuration of this shape."""
    return ActivationMemory(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    fields = {"activation_bytes": _BYTES, **shape}
    return Configuration(accumulator_depth=64, columns=8, **fields)


BENCH = Bench(
    name="bench_activation_memory",
    component=make,
    test_module=__name__,
    parameters=(
        {"rows": 32, "lanes": 8},
        {"rows": 4, "lanes": 4, "dram": "MT48LC16M16"},
    ),
    thorough=(
        {"rows": 16, "lanes": 4},
        {"rows": 8, "lanes": 8},
        {"rows": 12, "lanes": 4},
        {"rows": 16, "lanes": 8},
        {"rows": 32, "lanes": 8, "dram": "MT48LC16M16"},
    ),
)


class _Memory:
    """Drives the post-processor's port and both of the link's, and knows what must be there.

    The link has the lower half of the memory, the post-processor the upper one. The DMA, if there
    is one, has the upper quarter of the lower half instead of the link.
    """

    def __init__(self, dut: Any, seed: int, stall: float = 0.0) -> None:
        self._dut = dut
        self._configuration = c = _configuration(parameters())
        self.lanes, self.banks = c.lanes, c.banks
        self.draw = random.Random(seed)
        self.bytes = np.zeros(_BYTES, np.uint8)
        self.has_dma = bool(c.dram)
        self.link_end = _BYTES // 4 if self.has_dma else _BYTES // 2
        if self.has_dma:
            self._slices = Producer(dut, "dma_writes", seed=seed + 2, stall=stall)
            self._slice_reads = Producer(dut, "dma_reads", seed=seed + 3, stall=stall)
        self._writes = Producer(dut, "link_writes", seed=seed, stall=stall)
        self._reads = Producer(dut, "link_reads", seed=seed + 1, stall=stall)

    async def start(self) -> None:
        for name in ("write", "read"):
            getattr(self._dut, name).value = 0
        await start(self._dut)

    async def send(self, places: list[int]) -> None:
        """The link writes random bytes to these places, in this order."""
        layout = byte_write_layout(self._configuration)
        values = [self.draw.randrange(256) for _ in places]
        for place, value in zip(places, values, strict=True):
            self.bytes[place] = value
        await self._writes.send(
            pack(layout, {"address": place, "data": value})
            for place, value in zip(places, values, strict=True)
        )

    async def read_back(self, places: list[int]) -> list[int]:
        """The bytes of these places, as the link reads them."""
        self._reads.start(places)
        found = list[int]()
        while len(found) < len(places):
            await FallingEdge(self._dut.clk)
            if self._dut.link_read_valid.value == 1:
                found.append(int(self._dut.link_read_data.value))
            await RisingEdge(self._dut.clk)
        return found

    async def clear_dma(self) -> None:
        layout, mask = slice_write_layout(self._configuration), (1 << self.lanes) - 1
        places = range(self.link_end, _BYTES // 2, self.lanes)
        await self._slices.send(
            pack(layout, {"address": place, "data": 0, "mask": mask}) for place in places
        )

    async def exercise_dma(self, count: int) -> None:
        """Writes slices with holes, and reads some of them."""
        layout = slice_write_layout(self._configuration)
        first, slots = self.link_end // self.lanes, _BYTES // 4 // self.lanes
        for _ in range(count):
            writes = list[int]()
            for _ in range(self.draw.randrange(1, 12)):
                place = (first + self.draw.randrange(slots)) * self.lanes
                mask = self.draw.randrange(1, 1 << self.lanes)
                values = [self.draw.randrange(256) for _ in range(self.lanes)]
                for k, value in enumerate(values):
                    if mask >> k & 1:
                        self.bytes[place + k] = value
                word = sum(value << 8 * k for k, value in enumerate(values))
                writes.append(pack(layout, {"address": place, "data": word, "mask": mask}))
            await self._slices.send(writes)
            places = [
                (first + self.draw.randrange(slots)) * self.lanes
                for _ in range(self.draw.randrange(1, 5))
            ]
            self._slice_reads.start(places)
            for place in places:
                while True:
                    await FallingEdge(self._dut.clk)
                    came = self._dut.dma_read_valid.value == 1
                    found = int(self._dut.dma_read_data.value) if came else 0
                    await RisingEdge(self._dut.clk)
                    if came:
                        break
                expected = self.bytes[place : place + self.lanes].tobytes()
                assert found == int.from_bytes(expected, "little")

    async def drain(self, first: int, pitch: int, pixels: int) -> None:
        """The post-processor writes L bytes a cycle, pixel after pixel."""
        layout = write_layout(self._configuration)
        for pixel in range(pixels):
            place = _BYTES // 2 + (first + pixel * pitch) % (_BYTES // 2)
            values = [self.draw.randrange(256) for _ in range(self.lanes)]
            self.bytes[place : place + self.lanes] = values
            word = sum(value << 8 * k for k, value in enumerate(values))
            self._dut.write.value = pack(layout, {"enable": 1, "address": place, "data": word})
            await RisingEdge(self._dut.clk)
        self._dut.write.value = 0

    async def map(self, places: list[int]) -> None:
        """The post-processor reads L bytes a cycle, and what it reads is right."""
        for cycle in range(len(places) + ACTIVATION_READ_LATENCY):
            await RisingEdge(self._dut.clk)
            asked = cycle < len(places)
            self._dut.read.value = places[cycle] << 1 | 1 if asked else 0
            await FallingEdge(self._dut.clk)
            if cycle >= ACTIVATION_READ_LATENCY:
                place = places[cycle - ACTIVATION_READ_LATENCY]
                word = self.bytes[place : place + self.lanes].tobytes()
                assert int(self._dut.read_data.value) == int.from_bytes(word, "little")

    async def settle(self) -> None:
        while self._dut.link_settled.value != 1:
            await RisingEdge(self._dut.clk)

    def slices(self, pixels: int, pitch: int) -> list[tuple[int, int, int]]:
        """Lists the drains of a layer: the slices of a pixel's channels, one after the other."""
        return [(first, pitch, pixels) for first in range(0, pitch, self.lanes)]


async def _drain_for_ever(memory: _Memory, pixels: int, pitch: int) -> None:
    while True:
        for first, step, count in memory.slices(pixels, pitch):
            await memory.drain(first, step, count)


@cocotb.test()
@cocotb.parametrize(pitch_slots=[1, 2, 3, 4, 8], pixels=[3, 13, 64], stall=[0.0, 0.5], seed=[1, 2])
async def keeps_every_byte(
    dut: Any, pitch_slots: int, pixels: int, stall: float, seed: int
) -> None:
    """Link and post-processor write at once: in order, by leaps, and twice to the same place."""
    memory = _Memory(dut, seed, stall)
    await memory.start()
    await memory.send(list(range(memory.link_end)))
    exercising = None
    if memory.has_dma:
        await memory.clear_dma()
        exercising = cocotb.start_soon(memory.exercise_dma(40))
    places = list(range(40, 40 + 5 * memory.banks))
    for _ in range(30):
        first = memory.draw.randrange(memory.link_end - 24)
        places += range(first, first + memory.draw.randrange(1, 24))
        places += [memory.draw.randrange(memory.link_end)] * memory.draw.randrange(1, 3)
    sending = cocotb.start_soon(memory.send(places))
    while not sending.done():
        for first, pitch, count in memory.slices(pixels, pitch_slots * memory.lanes):
            await memory.drain(first, pitch, count)
            for _ in range(memory.draw.choice((0, 0, 1, 7))):
                await RisingEdge(dut.clk)
    if exercising is not None:
        await exercising
    # a read does not pass a write, though nobody waits for that
    last = places[-3:]
    assert await memory.read_back(last) == [memory.bytes[place] for place in last]
    await memory.settle()
    for _ in range(20):
        await RisingEdge(dut.clk)
    first = memory.draw.randrange(_BYTES // 2 // memory.lanes) * memory.lanes
    await memory.map([first, *range(0, _BYTES // 2, memory.lanes)])
    everywhere = list(range(_BYTES // 2))
    assert await memory.read_back(everywhere) == memory.bytes[everywhere].tolist()
    upper = [memory.draw.randrange(_BYTES // 2, _BYTES) for _ in range(50)]
    written = [place for place in upper if memory.bytes[place]]
    assert await memory.read_back(written) == memory.bytes[written].tolist()


@cocotb.test()
@cocotb.parametrize(pitch_slots=[1, 2, 4, 8])
async def goes_on_beside_the_post_processor(dut: Any, pitch_slots: int) -> None:
    """A byte a cycle, nearly, while every cycle has a write of the post-processor."""
    memory = _Memory(dut, 3)
    if memory.banks // memory.lanes < 4 or memory.has_dma:
        return
    await memory.start()
    draining = cocotb.start_soon(_drain_for_ever(memory, 96, pitch_slots * memory.lanes))
    cycles = 0

    async def count() -> None:
        nonlocal cycles
        while True:
            await RisingEdge(dut.clk)
            cycles += 1

    counting = cocotb.start_soon(count())
    for _ in range(8):
        await memory.send(list(range(_BYTES // 2)))
    counting.cancel()
    draining.cancel()
    assert cycles < 1.1 * 8 * _BYTES // 2, f"{4 * _BYTES} bytes took {cycles} cycles"

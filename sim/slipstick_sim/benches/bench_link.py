"""The link against the golden endpoint: the same bytes in, the same bytes out, the same effects."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from slipstick_rtl.config import Configuration
from slipstick_rtl.engines import COMPACT
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.layouts import ByteWrite, RunStatus
from slipstick_rtl.link.link import Link
from slipstick_rtl.link.links import make_link
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    Command,
    DeviceStatus,
    Space,
    encode,
)
from slipstick_rtl.link.spaces import unit_bytes, unit_count, units_per_frame

from ..golden.link import Endpoint
from .drivers.streams import CLOCK_PERIOD_NS, Consumer, Producer, pack, start, unpack
from .registry import Bench, parameters
from .stimulus.random_requests import RequestSource

TIMEOUT_CYCLES = 300

COMPACT_BYTE_CYCLES = 11
"""More than one that a byte of a frame takes on a compact link: its CRC, and its way to memory."""


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 10,
        weight_bytes=1 << 10,
        parameter_words=16 if shape.get("engine") == "compact" else 0,
        instruction_words=256,
        **shape,
    )


def make(**shape: Any) -> Link | CompactLink:
    """The link of a configuration with small memories."""
    configuration = _configuration(shape)
    return make_link(configuration, TIMEOUT_CYCLES)


BENCH = Bench(
    name="bench_link",
    component=make,
    test_module=__name__,
    parameters=(
        {"rows": 4, "columns": 8, "lanes": 4, "payload_bytes": 64},
        {"rows": 16, "columns": 16, "lanes": 8, "payload_bytes": 256},
        {
            "rows": 16,
            "columns": 8,
            "lanes": 8,
            "weight_rows": 4,
            "ninth_bits": 1,
            "payload_bytes": 256,
        },
        {"rows": 2, "columns": 8, "lanes": 1, "payload_bytes": 64, "engine": "compact"},
    ),
)


class Surroundings:
    """The memories and the state of a run: what the golden endpoint acts upon."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.memories = {
            space: bytearray(unit_count(configuration, space) * unit_bytes(configuration, space))
            for space in Space
        }
        self.running = False
        self.strobes: list[tuple[int, ...] | str] = []
        self.counters = DeviceStatus(False, True, (0x1234, 0x5678), 0x89ABCDEF, (3, 0x01020304))

    def write(self, space: Space, address: int, data: bytes) -> None:
        begin = address * unit_bytes(self._configuration, space)
        self.memories[space][begin : begin + len(data)] = data

    def read(self, address: int, count: int) -> bytes:
        return bytes(self.memories[Space.ACTIVATIONS][address : address + count])

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        self.strobes.append((*pcs, clear))
        self.running = True

    def reset(self) -> None:
        self.strobes.append("reset")
        self.running = False

    def status(self) -> DeviceStatus:
        fields = dict(vars(self.counters), running=self.running)
        return DeviceStatus(**fields)


class LinkBench:
    """A link with surroundings of its own, beside a golden endpoint with equal ones.

    Parameters
    ----------
    dut : cocotb handle
    stall : float
        Probability of a stall, on every stream and in every cycle.
    latency : int
        Most cycles from a read to its byte.
    """

    def __init__(self, dut: Any, *, stall: float, latency: int = 3, seed: int = 1) -> None:
        self.configuration = _configuration(parameters())
        self.golden = Surroundings(self.configuration)
        self.actual = Surroundings(self.configuration)
        self.endpoint = Endpoint(self.configuration, self.golden)
        self._dut = dut
        self._random = random.Random(seed)
        self._stall = stall
        self._latency = latency
        self._producer = Producer(dut, "i", seed=seed + 1, stall=stall / 2)
        self._consumer = Consumer(dut, "o", seed=seed + 2, stall=stall)
        self._writes = Consumer(dut, "writes", seed=seed + 3, stall=stall)
        self._reads = Consumer(dut, "reads", seed=seed + 4, stall=stall)
        self._read_data = Producer(dut, "read_data", seed=seed + 5, stall=stall)
        self._asked: deque[int] = deque()

    async def start(self) -> None:
        """Out of reset, with the surroundings alive."""
        self._drive_status()
        await start(self._dut)
        for part in (self._serve_writes, self._take_reads, self._serve_reads, self._watch_strobes):
            cocotb.start_soon(part())

    async def exchange(self, request: bytes) -> int:
        """Sends bytes; the answers must be the golden endpoint's. Returns the cycles it took."""
        expected = self.endpoint.feed(request)
        sending = self._producer.start(request)
        begin = get_sim_time("ns")
        answers = bytes(await self._consumer.receive(len(expected), timeout_cycles=40_000))
        await sending
        cycles = round((get_sim_time("ns") - begin) / CLOCK_PERIOD_NS)
        assert answers == expected, f"{answers.hex(' ')} instead of {expected.hex(' ')}"
        return cycles

    async def settle(self) -> None:
        """Until a frame that has begun is forgotten; then both sides must be in one state."""
        self.endpoint.time_out()
        await self._consumer.expect_silence(TIMEOUT_CYCLES + 20)
        assert self.actual.memories == self.golden.memories
        assert self.actual.strobes == self.golden.strobes
        assert self.actual.running == self.golden.running

    def finish_run(self) -> None:
        """The run that was started ends by itself."""
        self.golden.running = self.actual.running = False
        self._drive_status()

    def _drive_status(self) -> None:
        self._dut.status.value = pack(RunStatus, vars(self.actual.status()))

    async def _serve_writes(self) -> None:
        while True:
            (bits,) = await self._writes.receive(1, timeout_cycles=1 << 30)
            write = unpack(ByteWrite, bits)
            space = Space(write["space"])
            unit = unit_bytes(self.configuration, space)
            assert write["offset"] < unit
            place = write["address"] * unit + write["offset"]
            self.actual.memories[space][place] = write["data"]

    async def _take_reads(self) -> None:
        while True:
            self._asked += await self._reads.receive(1, timeout_cycles=1 << 30)

    async def _serve_reads(self) -> None:
        while True:
            if not self._asked:
                await RisingEdge(self._dut.clk)
                continue
            if self._random.random() < self._stall:
                await ClockCycles(self._dut.clk, self._random.randint(1, self._latency))
            await self._read_data.send(self.actual.read(self._asked.popleft(), 1))

    async def _watch_strobes(self) -> None:
        dut = self._dut
        while True:
            await RisingEdge(dut.clk)
            if dut.run.value == 1:
                word = dut.pcs.value.to_unsigned()
                pcs = [word >> 16 * number & 0xFFFF for number in range(len(STREAMS))]
                self.actual.run(pcs, dut.clear.value == 1)
            elif dut.reset_run.value == 1:
                self.actual.reset()
            else:
                continue
            await ClockCycles(dut.clk, 2)
            self._drive_status()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.6], fault=[0.0, 0.4])
async def answers_like_the_golden_endpoint(dut: Any, stall: float, fault: float) -> None:
    """Random requests back to back, sound and spoilt; truncated ones end by the timeout."""
    bench = LinkBench(dut, stall=stall, latency=9)
    await bench.start()
    source = RequestSource(bench.configuration, seed=int(100 * stall + 10 * fault))
    for _ in range(8):
        await bench.exchange(b"".join(source.draw(fault) for _ in range(12)))
        await bench.settle()
        bench.finish_run()


@cocotb.test()
async def forgets_a_truncated_frame(dut: Any) -> None:
    """Cut anywhere, a frame does nothing, and the one after the timeout is answered."""
    bench = LinkBench(dut, stall=0.0)
    await bench.start()
    source = RequestSource(bench.configuration, seed=3)
    frame = source.write(Space.INSTRUCTIONS, 2)
    for length in range(len(frame)):
        await bench.exchange(frame[:length])
        await bench.settle()
    await bench.exchange(frame)
    await bench.settle()


@cocotb.test()
@cocotb.parametrize(space=list(Space))
async def takes_a_byte_a_cycle(dut: Any, space: Space) -> None:
    """Maximal WRITEs back to back are executed while they come."""
    bench = LinkBench(dut, stall=0.0)
    await bench.start()
    units = units_per_frame(bench.configuration, space)
    unit = unit_bytes(bench.configuration, space)
    content = bytes(range(256)) * bench.configuration.payload_bytes
    content = content[: units * unit]
    payload = bytes([space, 1, 0, 0]) + content
    frame = encode(REQUEST_START, Command.WRITE, 0, payload)
    count = 12
    cycles = await bench.exchange(count * frame)
    # units of other sizes than powers of two are counted one by one, in two cycles each
    overhead = 4 + (2 * units + 1 if unit & (unit - 1) else 0)
    if bench.configuration.engine == COMPACT.name:
        overhead += COMPACT_BYTE_CYCLES * (len(frame) + HEADER_BYTES + CRC_BYTES)
    # one frame more: the last is executed when all have come
    assert cycles <= (count + 1) * (len(frame) + overhead) + 40
    await bench.settle()


@cocotb.test()
async def gives_a_byte_a_cycle(dut: Any) -> None:
    """Maximal READs back to back."""
    bench = LinkBench(dut, stall=0.0)
    await bench.start()
    size = bench.configuration.payload_bytes
    payload = bytes([Space.ACTIVATIONS, 1, 0, 0]) + size.to_bytes(2, "little")
    count = 12
    request = encode(REQUEST_START, Command.READ, 0, payload)
    cycles = await bench.exchange(count * request)
    answer = size + HEADER_BYTES + CRC_BYTES
    if bench.configuration.engine == COMPACT.name:
        answer += COMPACT_BYTE_CYCLES * (answer + len(request))
    assert cycles <= count * (answer + 14) + 40
    await bench.settle()

"""A link with surroundings of its own, beside a golden endpoint with equal ones."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.layouts import ByteWrite, RunStatus
from slipstick_rtl.link.protocol import (
    REGION_BYTES,
    REGIONS,
    REQUEST_START,
    SEQUENCE_NUMBERS,
    Command,
    Space,
    encode,
)
from slipstick_rtl.link.spaces import inner_number, spaces_of, unit_bytes

from ...golden.link import Endpoint
from .link_surroundings import Surroundings
from .streams import CLOCK_PERIOD_NS, Consumer, Producer, pack, start, unpack

TIMEOUT_CYCLES = 300
"""Cycles after which the link under test forgets half a frame."""

QUIET_CYCLES = 400
"""After which a link in which nothing moves must be waiting for the end of a run; more than it
takes to drop a payload."""


@dataclass(frozen=True)
class _End:
    """Describes how a wait for the end of a run goes: it ends, or it does not in time."""

    ends: bool
    bad_instruction: bool
    change: int


class LinkBench:
    """Sends requests to a link and to the golden endpoint, and compares what comes and what is.

    The golden endpoint does not wait: it asks how a wait goes, and what it was told happens to the
    run of the link later, once nothing moves there any more.

    Parameters
    ----------
    dut : cocotb handle
    configuration : Configuration
    stall : float
        Probability of a stall, on every stream and in every cycle.
    latency : int
        Most cycles from a read to its byte.

    Members
    -------
    run_cycles : int, optional
        Runs end by themselves after so many cycles, whatever waits for them.
    endless : bool
        Runs do not end.
    """

    def __init__(
        self,
        dut: Any,
        configuration: Configuration,
        *,
        stall: float,
        latency: int = 3,
        seed: int = 1,
    ) -> None:
        self.configuration = configuration
        self.run_cycles: int | None = None
        self.endless = False
        self.golden = Surroundings(configuration, self._plan)
        self.actual = Surroundings(configuration)
        self.endpoint = Endpoint(configuration, self.golden)
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
        self._plans: deque[_End] = deque()
        self._moved = 0
        """The cycle in which something last moved."""

    async def start(self) -> None:
        """Out of reset, with the surroundings alive."""
        self._drive_status()
        await start(self._dut)
        for part in (
            self._serve_writes,
            self._take_reads,
            self._serve_reads,
            self._watch_strobes,
            self._watch_bytes,
            self._end_runs,
        ):
            cocotb.start_soon(part())
        await self._clear_regions()

    async def _clear_regions(self) -> None:
        """A reset leaves the table of regions as the test before had it; number 0 is the next."""
        first = SEQUENCE_NUMBERS - REGIONS
        clear = [bytes([region]) + bytes(REGION_BYTES) for region in range(REGIONS)]
        await self.exchange(
            self.frame(first - 1, Command.OPEN, bytes(4)),
            *(self.frame(first + k, Command.DEFINE, clear[k]) for k in range(REGIONS)),
        )
        for side in (self.golden, self.actual):
            side.strobes.clear()

    def frame(self, sequence: int, command: int, payload: bytes = b"") -> bytes:
        """A request; ``command`` with its flags."""
        return encode(REQUEST_START, command, sequence % SEQUENCE_NUMBERS, payload)

    async def exchange(self, *requests: bytes | Callable[[int], bytes]) -> int:
        """Sends bytes; the answers must be the golden endpoint's. Returns the cycles it took.

        A request may be a function of the number that the device expects by then.
        """
        self._touch()
        sent, expected = b"", b""
        for request in requests:
            data = request if isinstance(request, bytes) else request(self.endpoint.next_sequence)
            expected += self.endpoint.feed(data)
            sent += data
        begin = get_sim_time("ns")
        sending = self._producer.start(sent)
        answers = bytes(await self._consumer.receive(len(expected), timeout_cycles=100_000))
        await sending
        cycles = round((get_sim_time("ns") - begin) / CLOCK_PERIOD_NS)
        assert answers == expected, f"{answers.hex(' ')} instead of {expected.hex(' ')}"
        return cycles

    async def settle(self) -> None:
        """Until a frame that has begun is forgotten; then both sides must be in one state."""
        self.endpoint.time_out()
        while self._quiet_cycles() < QUIET_CYCLES + TIMEOUT_CYCLES:
            await self._consumer.expect_silence(20)
        assert not self._plans, f"no request waits, but {self._plans} should have come"
        assert self.actual.memories == self.golden.memories
        assert self.actual.strobes == self.golden.strobes
        assert self.actual.running == self.golden.running

    def finish_run(self) -> None:
        """The run that was started ends by itself."""
        self.golden.running = self.actual.running = False
        self._drive_status()

    def _plan(self) -> bool:
        """Decides, when the golden endpoint waits for the end of a run, whether it ends in time."""
        if self.run_cycles is not None:
            self.golden.running = False
            return True
        ends = not self.endless and self._random.random() < 0.95
        end = _End(ends, self._random.random() < 0.2, self._random.randrange(256))
        self._plans.append(end)
        self._end(self.golden, end)
        return ends

    def _end(self, side: Surroundings, end: _End) -> None:
        if end.ends:
            side.finish(end.bad_instruction, end.change)

    def _drive_status(self) -> None:
        self._dut.status.value = pack(RunStatus, vars(self.actual.status()))

    def _touch(self) -> None:
        self._moved = round(get_sim_time("ns"))

    def _quiet_cycles(self) -> int:
        return (round(get_sim_time("ns")) - self._moved) // CLOCK_PERIOD_NS

    async def _end_runs(self) -> None:
        """Carries out the plans, one at each standstill of the link."""
        while True:
            await ClockCycles(self._dut.clk, 10)
            if not self._plans or self._quiet_cycles() < QUIET_CYCLES:
                continue
            assert self.actual.running, "the link stands still although no program runs"
            end = self._plans.popleft()
            self._end(self.actual, end)
            self._drive_status()
            standstill = self._moved
            while not end.ends and self._moved == standstill:
                await ClockCycles(self._dut.clk, 10)
            self._touch()

    async def _watch_bytes(self) -> None:
        dut = self._dut
        while True:
            await RisingEdge(dut.clk)
            if dut.o__valid.value == 1 or (dut.i__valid.value == 1 and dut.i__ready.value == 1):
                self._touch()

    async def _serve_writes(self) -> None:
        while True:
            (bits,) = await self._writes.receive(1, timeout_cycles=1 << 30)
            self._touch()
            write = unpack(ByteWrite, bits)
            known = spaces_of(self.configuration)
            space = next(each for each in known if inner_number(each) == write["space"])
            unit = unit_bytes(self.configuration, space)
            assert write["offset"] < unit
            if space is Space.TRANSFERS:
                given = self.actual.memories[space]
                assert write["offset"] == len(given) % unit
                given.append(write["data"])
                continue
            place = write["address"] * unit + write["offset"]
            self.actual.memories[space][place] = write["data"]

    async def _take_reads(self) -> None:
        while True:
            self._asked += await self._reads.receive(1, timeout_cycles=1 << 30)
            self._touch()

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
                if self.run_cycles is not None:
                    cocotb.start_soon(self._finish_after(self.run_cycles))
            elif dut.reset_run.value == 1:
                self.actual.reset()
            else:
                continue
            self._touch()
            await ClockCycles(dut.clk, 2)
            self._drive_status()

    async def _finish_after(self, cycles: int) -> None:
        await ClockCycles(self._dut.clk, cycles)
        self.actual.running = False
        self._drive_status()

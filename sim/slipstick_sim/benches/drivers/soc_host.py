"""Shares what the benches of the buses need: a host beside the golden endpoint, bus checks."""

import functools
import random
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    Command,
    DeviceStatus,
    Space,
    encode,
    unpack_status,
)
from slipstick_rtl.link.spaces import unit_bytes, units_per_frame
from slipstick_rtl.soc.interfaces import INTERFACES, InterfaceTop

from ...golden.core import GoldenCore
from ...golden.link import Endpoint
from ...netlist.portable import portable_verilog
from ..registry import Bench, parameters
from ..stimulus.random_program import random_program, random_weights
from .streams import CLOCK_PERIOD_NS

SHAPE = {"rows": 4, "columns": 4, "lanes": 4, "payload_bytes": 128}
WEIGHT_WORDS = 256
"""Words that random programs use; the others stay zero."""


def configuration_of(shape: dict[str, Any]) -> Configuration:
    """A core small enough to be compiled quickly, large enough for the digits network."""
    return Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 14,
        accumulator_depth=64,
        instruction_words=1 << 12,
        **shape,
    )


def bench_of(interface: str, name: str) -> Bench:
    """The bench of an interface: it simulates the very Verilog that ``slipstick export`` writes."""

    def component(**shape: Any) -> InterfaceTop:
        return InterfaceTop(interface=INTERFACES[interface], configuration=configuration_of(shape))

    return Bench(
        name=name.rpartition(".")[2],
        component=component,
        test_module=name,
        parameters=(SHAPE,),
        verilog=portable_verilog,
    )


@functools.cache
def _golden_core(configuration: Configuration) -> GoldenCore:
    """One for all tests of a simulation: accumulators and tables outlive a reset."""
    return GoldenCore(configuration)


class Port(Protocol):
    """A way for frames to reach the device."""

    async def send(self, frame: bytes) -> None:
        """Sends a request, or leaves it to something that will."""
        ...

    async def receive(self) -> bytes:
        """Receives the next part of the responses: some bytes, or exactly one response."""
        ...


class Host:
    """Sends requests to the device and to the golden endpoint, and compares the answers.

    Parameters
    ----------
    port : Port

    Members
    -------
    frames : int
        Exchanged so far.
    """

    def __init__(self, port: Port) -> None:
        self.configuration = configuration_of(parameters())
        self.port = port
        self.frames = 0
        self._endpoint = Endpoint(self.configuration, _golden_core(self.configuration))

    async def request(self, command: Command, payload: bytes = b"") -> bytes:
        """The payload of the device's answer; equal to the endpoint's but for a STATUS."""
        frame = encode(REQUEST_START, command, self._endpoint.next_sequence, payload)
        expected = self._endpoint.feed(frame)
        sending = cocotb.start_soon(self.port.send(frame))
        answer = b""
        while len(answer) < len(expected):
            answer += await self.port.receive()
        await sending
        self.frames += 1
        if command is not Command.STATUS:
            assert answer == expected, f"{command.name}: {answer.hex()} is not {expected.hex()}"
        return answer[HEADER_BYTES:-CRC_BYTES]

    async def write(self, space: Space, data: bytes, address: int = 0) -> None:
        """Fills a memory with whole units from unit ``address`` on."""
        unit = unit_bytes(self.configuration, space)
        step = unit * units_per_frame(self.configuration, space)
        for first in range(0, len(data), step):
            place = (address + first // unit).to_bytes(3, "little")
            await self.request(Command.WRITE, bytes([space]) + place + data[first : first + step])

    async def read(self, address: int, count: int) -> bytes:
        """Bytes of activation memory."""
        data, step = b"", self.configuration.payload_bytes
        for first in range(0, count, step):
            size = min(step, count - first)
            place = (address + first).to_bytes(3, "little") + size.to_bytes(2, "little")
            data += await self.request(Command.READ, bytes([Space.ACTIVATIONS]) + place)
        return data

    async def run(self, *pcs: int) -> DeviceStatus:
        """Runs a program to its end."""
        counters = b"".join(pc.to_bytes(2, "little") for pc in pcs)
        await self.request(Command.RUN, b"\1" + counters)
        return await self.finish()

    async def finish(self) -> DeviceStatus:
        """The status of the run that has been started, once it has ended."""
        for _ in range(4000):
            status = unpack_status(await self.request(Command.STATUS))[0]
            if not status.running:
                return status
        raise AssertionError("the run does not end")


async def run_random_program(host: Host, seed: int) -> DeviceStatus:
    """Fills all memories, runs random instructions, and reads back what they left."""
    configuration, generator = host.configuration, np.random.default_rng(seed)
    weights, units = random_weights(generator, configuration)
    used = weights[:WEIGHT_WORDS]
    await host.request(Command.IDENTIFY)
    await host.write(Space.WEIGHTS, units[: len(used) * configuration.weight_unit_bytes])
    await host.write(Space.ACTIVATIONS, generator.bytes(configuration.activation_bytes))
    program, post_pc, turns = random_program(generator, configuration, used)
    await host.write(Space.INSTRUCTIONS, program)
    status = await host.run(0, post_pc)
    assert status.done == (turns, turns), status
    assert not status.bad_instruction and 0 < status.cycles
    await host.read(0, configuration.activation_bytes)
    return status


async def begin(clock: Any, reset: Any, *, active_low: bool = False) -> None:
    """Starts the clock and gives a reset of two edges."""
    Clock(clock, CLOCK_PERIOD_NS, unit="ns").start()
    reset.value = int(not active_low)
    await ClockCycles(clock, 2)
    reset.value = int(active_low)
    await ClockCycles(clock, 2)


def pauses(seed: int, probability: float) -> Iterator[bool]:
    """For each cycle whether a channel rests."""
    generator = random.Random(seed)
    while True:
        yield generator.random() < probability


async def watch_channel(
    clock: Any, valid: Any, ready: Any, payload: Sequence[Any], counts: dict[str, int]
) -> None:
    """Checks that what is offered stays, unchanged, until it is taken; counts both."""
    offered: list[int] | None = None
    while True:
        await RisingEdge(clock)
        if valid.value == 0:
            assert offered is None, f"{valid._name} fell before a transfer"
            continue
        values = [int(signal.value) for signal in payload]
        assert offered in (None, values), f"{valid._name}: {offered} became {values}"
        taken = ready.value == 1
        counts["transfers" if taken else "stalls"] += 1
        offered = None if taken else values

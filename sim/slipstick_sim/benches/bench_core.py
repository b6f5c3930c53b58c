"""The whole core behind its link against the golden core behind the golden endpoint."""

from typing import Any

import cocotb
import numpy as np
from slipstick_rtl import isa
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    Command,
    DeviceStatus,
    Space,
    Status,
    encode,
)

from ..golden.core import GoldenCore
from ..golden.link import Endpoint
from .random_program import INSTRUCTIONS, random_parameter_words, random_program, random_weights
from .registry import Bench, parameters
from .streams import Consumer, Producer, start


def make(**shape: Any) -> Accelerator:
    """A small core of this shape."""
    return Accelerator(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 12,
        accumulator_depth=64,
        parameter_words=16,
        instruction_words=1 << 10,
        payload_bytes=256,
        **shape,
    )


BENCH = Bench(
    name="bench_core",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4},
        {"pixels": 2, "rows": 4, "columns": 4, "lanes": 4},
        {"rows": 2, "columns": 8, "lanes": 1, "engine": "compact"},
        {"rows": 4, "columns": 8, "lanes": 1, "engine": "compact"},
    ),
)


class _Host:
    """Sends requests to the design and to the golden endpoint, and compares the answers."""

    def __init__(self, dut: Any, configuration: Configuration) -> None:
        self._dut = dut
        self._endpoint = Endpoint(configuration, GoldenCore(configuration))
        self._sequence = 0
        self.stall(0.0)

    def stall(self, probability: float) -> None:
        """How often either end of the link rests from now on."""
        self._producer = Producer(self._dut, "i", seed=3, stall=probability)
        self._consumer = Consumer(self._dut, "o", seed=4, stall=probability)

    async def request(self, command: Command, payload: bytes = b"") -> bytes:
        """The design's answer; equal to the endpoint's but for a STATUS, which counts cycles."""
        self._sequence = (self._sequence + 1) % 256
        frame = encode(REQUEST_START, command, self._sequence, payload)
        sending = self._producer.start(frame)
        expected = self._endpoint.feed(frame)
        answer = bytes(await self._consumer.receive(len(expected), timeout_cycles=400_000))
        await sending
        if command is not Command.STATUS:
            assert answer == expected, f"{command.name}: {answer.hex()} is not {expected.hex()}"
        return answer[HEADER_BYTES:-CRC_BYTES]

    async def write(self, space: Space, unit: int, data: bytes) -> None:
        """Fills a memory from its first unit on."""
        step = (256 - 4) // unit * unit
        for first in range(0, len(data), step):
            head = bytes([space]) + (first // unit).to_bytes(3, "little")
            await self.request(Command.WRITE, head + data[first : first + step])

    async def status(self) -> DeviceStatus:
        """The run's state once it is over."""
        for _ in range(400):
            status = DeviceStatus.unpack(await self.request(Command.STATUS))
            if not status.running:
                return status
        raise AssertionError("the run does not end")


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Programs of random instructions leave the same bytes in activation memory."""
    configuration = _configuration(parameters())
    generator = np.random.default_rng(5)
    await start(dut)
    host = _Host(dut, configuration)
    weights = random_weights(generator, configuration)
    words = random_parameter_words(generator, configuration)
    await host.request(Command.IDENTIFY)
    await host.write(Space.WEIGHTS, configuration.columns, weights.tobytes())
    await host.write(Space.PARAMETERS, configuration.parameter_bytes, words)
    activations = generator.integers(0, 256, configuration.activation_bytes, np.uint8)
    await host.write(Space.ACTIVATIONS, 1, activations.tobytes())
    # one golden core for all rounds: accumulators and table outlive a run, in gateware too
    for stall in (0.0, 0.0, 0.0, 0.0, 0.3, 0.3):
        host.stall(stall)
        program, post_pc = random_program(generator, configuration, weights)
        await host.write(Space.INSTRUCTIONS, 4, program)
        run = bytes([1, 0, 0]) + post_pc.to_bytes(2, "little")
        await host.request(Command.RUN, run)
        status = await host.status()
        assert (status.matrix_done, status.post_done) == (INSTRUCTIONS, INSTRUCTIONS)
        assert not status.bad_instruction and 0 < status.matrix_cycles < status.cycles, status
        for first in range(0, configuration.activation_bytes, 256):
            address = first.to_bytes(3, "little")
            await host.request(Command.READ, bytes([Space.ACTIVATIONS]) + address + b"\0\1")


@cocotb.test()
async def bad_and_endless_programs(dut: Any) -> None:
    """An unknown opcode ends its stream; a program that waits for ever is stopped by RESET."""
    configuration = _configuration(parameters())
    await start(dut)
    host = _Host(dut, configuration)
    halt, bad = bytes(48), bytes([9]) + bytes(47)
    await host.write(Space.INSTRUCTIONS, 4, halt + bad)
    await host.request(Command.RUN, bytes([1, 12, 0, 0, 0]))
    assert (await host.status()).bad_instruction
    await host.request(Command.RUN, bytes([1, 0, 0, 0, 0]))
    assert not (await host.status()).bad_instruction

    endless = isa.pack(isa.POST_FIELDS, {"opcode": isa.Opcode.TABLE, "wait": 1})
    frame = encode(REQUEST_START, Command.WRITE, 7, bytes([0, 0, 0, 0]) + halt + endless)
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    for request, size, expected in (
        (frame, 9, Status.OK),
        (encode(REQUEST_START, Command.RUN, 8, bytes([1, 0, 0, 12, 0])), 9, Status.OK),
        (encode(REQUEST_START, Command.RUN, 9, bytes([1, 0, 0, 12, 0])), 9, Status.BUSY),
        (frame, 9, Status.BUSY),
        (encode(REQUEST_START, Command.RESET, 10), 9, Status.OK),
    ):
        sending = producer.start(request)
        answer = await consumer.receive(size)
        await sending
        assert answer[1] == expected, f"{answer} must say {expected.name}"
    assert not (await host.status()).running

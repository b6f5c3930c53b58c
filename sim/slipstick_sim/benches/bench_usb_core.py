"""The whole core behind its USB port: a host on the wires gets the golden endpoint's answers."""

from collections.abc import Iterable
from typing import Any

import cocotb
import numpy as np
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    RUN_CLEARS_COUNTERS,
    SEQUENCE_NUMBERS,
    UNORDERED,
    Command,
    DeviceStatus,
    Space,
    Status,
    encode,
    unpack_status,
)
from slipstick_rtl.link.spaces import unit_bytes
from slipstick_rtl.phy.core_behind_phy import core_behind

from ..golden.core import GoldenCore
from ..golden.link import Endpoint
from .drivers.usb_bus import ABSENT_CYCLES, UsbBus, start
from .drivers.usb_driver import SerialDriver
from .drivers.usb_host import UsbHost
from .registry import Bench
from .stimulus.random_convolve import random_convolve
from .stimulus.random_post import random_post
from .stimulus.random_program import random_weights

CONFIGURATION = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 12,
    weight_bytes=1 << 12,
    accumulator_depth=64,
    instruction_words=256,
    payload_bytes=256,
)
WEIGHT_WORDS = 64
"""Words of the weight memory that are written: the parameters' blocks, and weights."""
USED_BYTES = 2048
"""Bytes of the activation memory that are filled, and read."""


def component() -> UsbBus:
    """A small core at the device's end of a cable."""
    device = core_behind("usb", CONFIGURATION, absent_cycles=ABSENT_CYCLES)
    return UsbBus(device)


BENCH = Bench(
    name="bench_usb_core",
    component=component,
    test_module=__name__,
    parameters=(),
    thorough=({},),
    timeout_seconds=600,
)


class Session:
    """A host's link to the core, beside a golden endpoint that is told the same.

    Attributes
    ----------
    driver : SerialDriver
    golden : Endpoint
    """

    def __init__(self, dut: Any) -> None:
        self.driver = SerialDriver(UsbHost(dut))
        self.golden = Endpoint(CONFIGURATION, GoldenCore(CONFIGURATION))
        self._next = 0

    def frame(self, command: Command, payload: bytes = b"") -> bytes:
        """A request."""
        frame = encode(REQUEST_START, command, self._next, payload)
        if command not in UNORDERED:
            self._next = (self._next + 1) % SEQUENCE_NUMBERS
        return frame

    async def request(self, *frames: bytes) -> bytes:
        """Sends requests ahead of their answers, which must be the golden endpoint's."""
        expected = self.golden.feed(b"".join(frames))
        answers = await self.driver.exchange(b"".join(frames), len(expected))
        assert answers == expected, f"{answers.hex(' ')} instead of {expected.hex(' ')}"
        return answers

    async def write(self, space: Space, data: bytes) -> None:
        """Fills a memory from its first unit on."""
        unit = unit_bytes(CONFIGURATION, space)
        step = (CONFIGURATION.payload_bytes - 4) // unit * unit
        frames = []
        for first in range(0, len(data), step):
            head = bytes([space]) + (first // unit).to_bytes(3, "little")
            frames.append(self.frame(Command.WRITE, head + data[first : first + step]))
        await self.request(*frames)

    async def finish_run(self) -> DeviceStatus:
        """The state of the run when it is over; cycles are the gateware's to count."""
        for _ in range(50):
            frame = self.frame(Command.STATUS)
            size = len(self.golden.feed(frame))
            answer = await self.driver.exchange(frame, size)
            status, _ = unpack_status(answer[HEADER_BYTES:-CRC_BYTES])
            if not status.running:
                return status
        raise AssertionError("the run does not end")


async def _begin(dut: Any) -> Session:
    await start(dut)
    session = Session(dut)
    await session.driver.enumerate()
    assert session.driver.found.texts[2] == CONFIGURATION.fingerprint
    return session


def _program(generator: np.random.Generator, weights: np.ndarray) -> tuple[bytes, int]:
    """A convolution and what drains it; the word of the second stream."""
    convolve = random_convolve(generator, CONFIGURATION, weights) | {"wait": 0, "bank": 0}
    drain = {"opcode": 0}
    while drain["opcode"] != isa.Opcode.DRAIN:
        drain = random_post(generator, CONFIGURATION)
    drain |= {"wait": 1, "bank": 0}
    matrix = isa.pack(isa.MATRIX_FIELDS, convolve) + isa.pack(isa.MATRIX_FIELDS, {})
    post = isa.pack(isa.POST_FIELDS, drain) + isa.pack(isa.POST_FIELDS, {})
    return matrix + post, len(matrix) // 4


def _reads(session: Session, firsts: Iterable[int], size: int) -> list[bytes]:
    count = size.to_bytes(2, "little")
    places = [bytes([Space.ACTIVATIONS]) + first.to_bytes(3, "little") for first in firsts]
    return [session.frame(Command.READ, place + count) for place in places]


@cocotb.test()
async def runs_a_program(dut: Any) -> None:
    """IDENTIFY, all memories written, a run, and the activations read: each byte as golden."""
    session = await _begin(dut)
    generator = np.random.default_rng(5)
    weights, units = random_weights(generator, CONFIGURATION)
    used = weights[:WEIGHT_WORDS]
    activations = generator.integers(0, 256, USED_BYTES, np.uint8)
    program, post_pc = _program(generator, used)
    await session.request(session.frame(Command.IDENTIFY))
    await session.write(Space.WEIGHTS, units[: WEIGHT_WORDS * CONFIGURATION.weight_unit_bytes])
    await session.write(Space.ACTIVATIONS, activations.tobytes())
    await session.write(Space.INSTRUCTIONS, program)
    size = CONFIGURATION.payload_bytes
    before = await session.request(*_reads(session, range(0, USED_BYTES, size), size))
    run = bytes([RUN_CLEARS_COUNTERS, 0, 0]) + post_pc.to_bytes(2, "little")
    await session.request(session.frame(Command.RUN, run))
    status = await session.finish_run()
    assert status.done == (1, 1) and not status.bad_instruction
    after = await session.request(*_reads(session, range(0, USED_BYTES, size), size))
    assert after != before


@cocotb.test()
async def goes_on_after_a_bus_reset(dut: Any) -> None:
    """A reset in the midst of a frame, and of an answer; a spoilt frame gets BAD_CRC."""
    session = await _begin(dut)
    frame = session.frame(Command.WRITE, bytes([Space.ACTIVATIONS, 0, 0, 0]) + bytes(range(200)))
    expected = session.golden.feed(frame)
    await session.driver.send(frame[:100])
    await session.driver.enumerate(address=9)
    assert await session.driver.exchange(frame[100:], len(expected)) == expected
    frames = b"".join(_reads(session, [0] * 6, 200))
    expected = session.golden.feed(frames)
    await session.driver.send(frames)
    await session.driver.receive(700)
    await session.driver.enumerate(address=10)
    assert await session.driver.receive(len(expected) - 700) == expected[700:]
    spoilt = bytearray(session.frame(Command.IDENTIFY))
    spoilt[-1] ^= 1
    assert (await session.request(bytes(spoilt)))[1] == Status.BAD_CRC
    await session.request(session.frame(Command.IDENTIFY))

"""A host for benches of the whole core: all that it asks goes to the golden core as well."""

from collections.abc import Iterable
from typing import Any

from slipstick_rtl.config import WRITE_ARGUMENTS, Configuration
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    RUN_CLEARS_COUNTERS,
    Command,
    DeviceStatus,
    Space,
    encode,
    unpack_status,
)

from ...golden.core import GoldenCore
from ...golden.link import Endpoint
from .streams import Consumer, Producer


def pieces(space: Space, unit: int, data: bytes, first: int, most: int) -> list[bytes]:
    """Payloads of WRITEs of at most so many bytes each, from unit ``first`` on."""
    step = most // unit * unit
    return [
        bytes([space]) + (first + start // unit).to_bytes(3, "little") + data[start:][:step]
        for start in range(0, len(data), step)
    ]


class Host:
    """Sends requests to the design and to the golden endpoint, and compares the answers."""

    def __init__(self, dut: Any, configuration: Configuration) -> None:
        self.configuration = configuration
        self._dut = dut
        self._endpoint = Endpoint(configuration, GoldenCore(configuration))
        self._payload_bytes = configuration.payload_bytes
        self.stall(0.0)

    def stall(self, probability: float) -> None:
        """Sets the probability with which either end of the link stalls from now on."""
        self._producer = Producer(self._dut, "i", seed=3, stall=probability)
        self._consumer = Consumer(self._dut, "o", seed=4, stall=probability)

    async def request(self, command: int, payload: bytes = b"") -> bytes:
        """The design's answer; equal to the endpoint's but for a STATUS, which counts cycles."""
        sent, expected = self._numbered(command, payload)
        answer = await self._exchange(sent, len(expected))
        if command != Command.STATUS:
            assert answer == expected, f"{command}: {answer.hex()} is not {expected.hex()}"
        return answer[HEADER_BYTES:-CRC_BYTES]

    async def stream(self, requests: Iterable[tuple[int, bytes]]) -> bytes:
        """Sends requests back to back, commands with their flags; all answers, which are equal to
        the endpoint's."""
        frames = [self._numbered(*request) for request in requests]
        expected = b"".join(answer for _, answer in frames)
        answers = await self._exchange(b"".join(frame for frame, _ in frames), len(expected))
        assert answers == expected, f"{answers.hex(' ')} is not {expected.hex(' ')}"
        return answers

    def _numbered(self, command: int, payload: bytes) -> tuple[bytes, bytes]:
        """A request with the next number, and the endpoint's answer."""
        frame = encode(REQUEST_START, command, self._endpoint.next_sequence, payload)
        return frame, self._endpoint.feed(frame)

    async def _exchange(self, sent: bytes, size: int) -> bytes:
        """Sends bytes, and returns so many that come back."""
        sending = self._producer.start(sent)
        answer = bytes(await self._consumer.receive(size, timeout_cycles=400_000))
        await sending
        return answer

    async def write(self, space: Space, unit: int, data: bytes, first: int = 0) -> None:
        """Fills a memory from a unit on; ``unit`` is the bytes of one."""
        for payload in pieces(space, unit, data, first, self._payload_bytes - WRITE_ARGUMENTS):
            await self.request(Command.WRITE, payload)

    async def run(self, *pcs: int) -> None:
        """Starts both streams, with the counters at zero."""
        addresses = b"".join(pc.to_bytes(2, "little") for pc in pcs)
        await self.request(Command.RUN, bytes([RUN_CLEARS_COUNTERS]) + addresses)

    async def compare_activations(self, size: int) -> None:
        """Reads all of them, from design and endpoint."""
        count = self._payload_bytes.to_bytes(2, "little")
        for first in range(0, size, self._payload_bytes):
            address = first.to_bytes(3, "little")
            await self.request(Command.READ, bytes([Space.ACTIVATIONS]) + address + count)

    async def look(self) -> DeviceStatus:
        """The run's state now."""
        return unpack_status(await self.request(Command.STATUS))[0]

    async def status(self) -> DeviceStatus:
        """The run's state once it is over."""
        for _ in range(400):
            status = await self.look()
            if not status.running:
                return status
        raise AssertionError("the run does not end")

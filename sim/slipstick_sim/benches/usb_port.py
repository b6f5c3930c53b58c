"""A port with a host at one side and streams at the other, for the tests of the port."""

import random
from typing import Any

from cocotb.task import Task

from .streams import Consumer, Producer
from .usb_bus import start
from .usb_driver import SerialDriver
from .usb_host import UsbHost


class PortBench:
    """A port between a host and two streams.

    Parameters
    ----------
    dut : cocotb handle
    stall : float
        Of the streams.
    **line
        Of the host's wires.
    """

    def __init__(self, dut: Any, *, stall: float = 0.0, **line: Any) -> None:
        self.dut = dut
        self.producer = Producer(dut, "i", seed=1, stall=stall)
        self.consumer = Consumer(dut, "o", seed=2, stall=stall)
        self._line = line

    async def start(self, **clocks: int) -> None:
        """The clocks run, and the device is reset."""
        await start(self.dut, **clocks)
        self.host = UsbHost(self.dut, **self._line)
        self.driver = SerialDriver(self.host)

    async def connect(self, **clocks: int) -> None:
        """The host has found the device."""
        await self.start(**clocks)
        await self.driver.enumerate()
        assert self.dut.configured.value == 1

    def consume(self, count: int) -> Task[list[int]]:
        """Takes bytes from ``o``, however long they need."""
        return self.consumer.start(count, timeout_cycles=300_000)

    async def send(self, data: bytes) -> None:
        """From the host to ``o``."""
        consumed = self.consume(len(data))
        await self.driver.send(data)
        assert bytes(await consumed) == data

    async def receive(self, data: bytes) -> None:
        """From ``i`` to the host."""
        produced = self.producer.start(data)
        assert await self.driver.receive(len(data)) == data
        await produced

    async def both(self, data: bytes) -> None:
        """Some bytes each way."""
        await self.send(data)
        await self.receive(data)

    async def finish(self) -> None:
        """Nothing comes that no one expects."""
        for _ in range(3):
            assert not await self.driver.poll()
        await self.consumer.expect_silence(50)


def random_bytes(seed: int, count: int) -> bytes:
    """Bytes with more of those that need stuffed bits than chance would give."""
    generator = random.Random(seed)
    return bytes(generator.choice([0xFF, 0x00, generator.randrange(256)]) for _ in range(count))

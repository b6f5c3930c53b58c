"""A port with a host at one side and streams at the other, for the tests of the port."""

import random
from collections.abc import Iterable
from typing import Any

from cocotb.task import Task
from cocotb.triggers import First, RisingEdge, Timer

from .streams import Consumer, Producer
from .usb_bus import start
from .usb_driver import SerialDriver
from .usb_host import UsbHost


class Source(Producer):
    """A producer that sleeps while its stream waits: USB needs many cycles for a byte."""

    async def send(self, payloads: Iterable[int]) -> None:
        """As of ``Producer``."""
        if self._stall:
            return await super().send(payloads)
        for payload in payloads:
            self._payload.value = payload
            self._valid.value = 1
            await RisingEdge(self._clock)
            while self._ready.value == 0:
                await RisingEdge(self._ready)
                await RisingEdge(self._clock)
        self._valid.value = 0


class Sink(Consumer):
    """A consumer that sleeps while nothing comes."""

    async def receive(self, count: int, *, timeout_cycles: int = 300_000) -> list[int]:
        """As of ``Consumer``; without stalls, ``timeout_cycles`` are of a core of 100 MHz."""
        if self._stall:
            return await super().receive(count, timeout_cycles=timeout_cycles)
        payloads: list[int] = []
        self._ready.value = 1
        while len(payloads) < count:
            await RisingEdge(self._clock)
            if self._valid.value == 1:
                payloads.append(self._payload.value.to_unsigned())
                continue
            limit = Timer(10 * timeout_cycles, unit="ns")
            late = await First(limit, RisingEdge(self._valid)) is limit
            assert not late, f"{len(payloads)} of {count} bytes came"
        self._ready.value = 0
        return payloads


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
        self.producer = Source(dut, "i", seed=1, stall=stall)
        self.consumer = Sink(dut, "o", seed=2, stall=stall)
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
        return self.consumer.start(count)

    async def send(self, data: bytes) -> None:
        """Sends from the host to ``o``."""
        consumed = self.consume(len(data))
        await self.driver.send(data)
        assert bytes(await consumed) == data

    async def receive(self, data: bytes) -> None:
        """Receives from ``i`` to the host."""
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

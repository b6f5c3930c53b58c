"""Coroutines for cocotb tests: the clock, and producers and consumers of flattened streams.

An Amaranth stream port ``i`` is ``i__payload``, ``i__valid`` and ``i__ready`` in Verilog. All
coroutines sample at the rising edge and drive right after it, as registers do.
"""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import cocotb
from amaranth.lib import data
from cocotb.clock import Clock
from cocotb.task import Task
from cocotb.triggers import ClockCycles, RisingEdge

CLOCK_PERIOD_NS = 10


async def start(dut: Any, *, reset_cycles: int = 2) -> None:
    """Starts the clock ``clk`` of 10 ns and holds ``rst`` for some cycles.

    Set inputs that must not be 0 during reset before; streams start with valid and ready at 0.
    """
    Clock(dut.clk, CLOCK_PERIOD_NS, unit="ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, reset_cycles)
    dut.rst.value = 0


def pack(layout: data.Layout, fields: Mapping[Any, Any]) -> int:
    """The bits of a structured payload: ``pack(layout, {"last": 1, "data": -3})``."""
    return layout.const(fields).as_bits()


def unpack(layout: data.Layout, bits: int) -> dict[str, Any]:
    """The fields of a structured payload, nested layouts as nested mappings or lists."""
    return _plain(layout.from_bits(bits))


def _plain(value: Any) -> Any:
    if not isinstance(value, data.Const):
        return value
    layout = value.shape()
    if isinstance(layout, data.StructLayout):
        return {name: _plain(value[name]) for name in layout.members}
    if isinstance(layout, data.ArrayLayout):
        return [_plain(value[index]) for index in range(layout.length)]
    return value.as_bits()


class Producer:
    """Drives one input stream of the design under test.

    Parameters
    ----------
    dut : cocotb handle
        The design, with clock ``clk``.
    port : str
        The stream's name, such as ``i``.
    seed : int
        Of the random stalls.
    stall : float
        Probability that a cycle begins without a valid payload.
    """

    def __init__(self, dut: Any, port: str, *, seed: int = 0, stall: float = 0.0) -> None:
        self._clock = dut.clk
        self._payload = getattr(dut, f"{port}__payload")
        self._valid = getattr(dut, f"{port}__valid")
        self._ready = getattr(dut, f"{port}__ready")
        self._random = random.Random(seed)
        self._stall = stall
        self._valid.value = 0

    async def send(self, payloads: Iterable[int]) -> None:
        """Transfers the payloads in order; returns at the edge that took the last of them."""
        for payload in payloads:
            while self._random.random() < self._stall:
                await RisingEdge(self._clock)
            self._payload.value = payload
            self._valid.value = 1
            await RisingEdge(self._clock)
            while self._ready.value == 0:
                await RisingEdge(self._clock)
            self._valid.value = 0

    def start(self, payloads: Iterable[int]) -> Task[None]:
        """The same in the background; await the task to wait for its end."""
        return cocotb.start_soon(self.send(payloads))


class Consumer:
    """Takes payloads from one output stream, and checks that the stream keeps the protocol.

    A payload that is valid but not taken must stay, unchanged, until it is taken.

    Parameters
    ----------
    dut, port, seed
        As for ``Producer``.
    stall : float
        Probability that ready is 0 in a cycle.
    """

    def __init__(self, dut: Any, port: str, *, seed: int = 0, stall: float = 0.0) -> None:
        self._clock = dut.clk
        self._port = port
        self._payload = getattr(dut, f"{port}__payload")
        self._valid = getattr(dut, f"{port}__valid")
        self._ready = getattr(dut, f"{port}__ready")
        self._random = random.Random(seed)
        self._stall = stall
        self._ready.value = 0
        self._pending: int | None = None

    async def receive(self, count: int, *, timeout_cycles: int = 100_000) -> list[int]:
        """The next ``count`` payloads, as unsigned numbers.

        Raises
        ------
        AssertionError
            If ``timeout_cycles`` pass before they have come, or the protocol is broken.
        """
        payloads: list[int] = []
        for _ in range(timeout_cycles):
            if len(payloads) == count:
                break
            ready = self._random.random() >= self._stall
            self._ready.value = int(ready)
            await RisingEdge(self._clock)
            self._observe(ready, payloads)
        self._ready.value = 0
        assert len(payloads) == count, (
            f"{self._port}: {len(payloads)} of {count} payloads after {timeout_cycles} cycles"
        )
        return payloads

    async def expect_silence(self, cycles: int) -> None:
        """Is ready for some cycles, in which no payload may come."""
        self._ready.value = 1
        for _ in range(cycles):
            await RisingEdge(self._clock)
            assert self._valid.value == 0, f"{self._port}: a payload that no one expects"
        self._ready.value = 0

    def start(self, count: int, **options: Any) -> Task[list[int]]:
        """``receive`` in the background; awaiting the task gives the payloads."""
        return cocotb.start_soon(self.receive(count, **options))

    def _observe(self, ready: bool, payloads: list[int]) -> None:
        valid = self._valid.value == 1
        payload = self._payload.value.to_unsigned() if valid else None
        if self._pending is not None:
            assert payload == self._pending, (
                f"{self._port}: payload {self._pending:#x} became {payload} before it was taken"
            )
        self._pending = payload if valid and not ready else None
        if payload is not None and ready:
            payloads.append(payload)

"""A high-speed port between a host and two streams, for the tests of the port."""

import random
from typing import Any

from cocotb.clock import Clock
from cocotb.task import Task
from cocotb.triggers import ClockCycles

from .streams import CLOCK_PERIOD_NS
from .ulpi_chip import UlpiChip
from .ulpi_host import CYCLE_PICOSECONDS, BulkDriver, HighSpeedHost
from .usb_port import PortBench


class HighSpeedBench(PortBench):
    """As ``PortBench``, with a ULPI chip between port and host.

    Parameters
    ----------
    dut : cocotb handle
        A ``UlpiBus``.
    stall : float
        Of the streams, and of the chip.
    """

    host: HighSpeedHost
    driver: BulkDriver

    def __init__(self, dut: Any, *, stall: float = 0.0) -> None:
        super().__init__(dut, stall=stall)
        self._stall = stall

    async def start(self, **clocks: int) -> None:
        """The clocks run, the port and the chip are reset, and the device has its pull-up on."""
        dut = self.dut
        dut.rst.value = 1
        Clock(dut.clk, clocks.get("core", 1000 * CLOCK_PERIOD_NS), unit="ps").start()
        Clock(dut.chip_clk, CYCLE_PICOSECONDS, unit="ps").start()
        self.chip = UlpiChip(dut, generator=random.Random(7), stall=self._stall)
        await ClockCycles(dut.clk, 4)
        assert dut.chip_rst.value == 1
        dut.rst.value = 0
        self.host = HighSpeedHost(self.chip)
        self.driver = BulkDriver(self.host)
        await self.host.attach()

    async def connect(self, **clocks: int) -> None:
        """The host has found the device."""
        await self.start(**clocks)
        await self.driver.enumerate()
        await ClockCycles(self.dut.clk, 20)  # through the synchronisers
        assert self.dut.configured.value == 1

    def consume(self, count: int) -> Task[list[int]]:
        """As of ``PortBench``, for longer than a bus reset."""
        return self.consumer.start(count, timeout_cycles=1_000_000)

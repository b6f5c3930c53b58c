"""A cocotb test: a LiteX SoC's UART bridge reads and writes registers of the core on its bus.

Not collected by pytest: the tutorials' test runs it inside the simulator.
"""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge

BIT_CYCLES = 10
WRITE, READ = 1, 2
ADDRESS = 0x3000_0000
INTERRUPT_ENABLE = 0x2C


async def _send(dut: Any, data: bytes) -> None:
    for byte in data:
        for bit in (0, *(byte >> place & 1 for place in range(8)), 1):
            dut.serial_rx.value = bit
            await ClockCycles(dut.clk25, BIT_CYCLES)


async def _receive(dut: Any, count: int) -> bytes:
    found = []
    for _ in range(count):
        await FallingEdge(dut.serial_tx)
        await ClockCycles(dut.clk25, BIT_CYCLES + BIT_CYCLES // 2)
        byte = 0
        for place in range(8):
            byte |= int(dut.serial_tx.value) << place
            await ClockCycles(dut.clk25, BIT_CYCLES)
        found.append(byte)
    return bytes(found)


async def _read(dut: Any, offset: int) -> int:
    words = (ADDRESS + offset) // 4
    answer = cocotb.start_soon(_receive(dut, 4))
    await _send(dut, bytes([READ, 1]) + words.to_bytes(4, "big"))
    return int.from_bytes(await answer, "big")


async def _write(dut: Any, offset: int, value: int) -> None:
    words = (ADDRESS + offset) // 4
    await _send(dut, bytes([WRITE, 1]) + words.to_bytes(4, "big") + value.to_bytes(4, "big"))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def registers_answer(dut: Any) -> None:
    """The core is identified, and a register keeps what was written."""
    cocotb.start_soon(Clock(dut.clk25, 40, "ns").start())
    dut.serial_rx.value = 1
    dut.rst.value = 1
    await ClockCycles(dut.clk25, 8)
    dut.rst.value = 0
    await ClockCycles(dut.clk25, 4 * BIT_CYCLES)
    assert (await _read(dut, 0)).to_bytes(4, "little") == b"SLIP"
    await _write(dut, INTERRUPT_ENABLE, 3)
    assert await _read(dut, INTERRUPT_ENABLE) == 3

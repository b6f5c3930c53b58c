"""The exported Wishbone interface, driven by cocotbext-wishbone, against the golden core."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, Lock, RisingEdge
from cocotbext.wishbone.driver import WBOp, WishboneMaster
from slipstick_rtl.soc.wishbone import PORT_NAMES

from .drivers.soc_host import Host, begin, bench_of, run_random_program
from .drivers.soc_registers import (
    BusError,
    RegisterPort,
    check_full_queues,
    check_registers,
    check_run_interrupt,
    check_strobes,
)

BENCH = bench_of("wishbone", __name__)
_NAMES = PORT_NAMES | {"datwr": PORT_NAMES["dat_w"], "datrd": PORT_NAMES["dat_r"]}
_SIGNALS = {
    name: _NAMES[name]
    for name in ("cyc", "stb", "we", "adr", "datwr", "datrd", "ack", "err", "sel")
}
_ACK, _ERR = 1, 2


class WishbonePort:
    """The registers, by classic cycles, before each of which the bus may rest."""

    def __init__(self, dut: Any, stall: float) -> None:
        self._master = WishboneMaster(dut, "wb", dut.clk, timeout=10, signals_dict=_SIGNALS)
        self._random, self._stall = random.Random(1), stall
        self.transfers = 0
        self._free = Lock()  # the model takes one caller at a time

    async def read(self, offset: int) -> int:
        return int((await self._cycle(WBOp(offset // 4, idle=self._idle()))).datrd)

    async def write(self, offset: int, value: int, strobes: int = 15) -> None:
        await self._cycle(WBOp(offset // 4, value, self._idle(), strobes))

    async def block(self, operations: list[WBOp]) -> list[tuple[int, int]]:
        """Transfers back to back within one cycle: each one's answer, and its word."""
        results = await self._master.send_cycle(operations)
        return [(result.ack, int(result.datrd)) for result in results]

    async def _cycle(self, operation: WBOp) -> Any:
        async with self._free:
            (result,) = await self._master.send_cycle([operation])
        self.transfers += 1
        if result.ack == _ERR:
            raise BusError("refused" if operation.adr < 0x38 // 4 else "unmapped")
        assert result.ack == _ACK
        return result

    def _idle(self) -> int:
        return self._random.randint(1, 4) if self._random.random() < self._stall else 0


class WishboneRegisters(RegisterPort):
    """Frames through the data registers of a Wishbone."""

    def __init__(self, wishbone: WishbonePort, dut: Any) -> None:
        super().__init__(wishbone, dut.irq, dut.clk)
        self.wishbone = wishbone


async def start(dut: Any, stall: float) -> WishboneRegisters:
    """The device out of reset, and a watch over its answers."""
    bus = WishbonePort(dut, stall)
    await begin(dut.clk, dut.rst)
    cocotb.start_soon(_watch_answers(dut))
    return WishboneRegisters(bus, dut)


async def _watch_answers(dut: Any) -> None:
    """An answer comes one cycle after its strobe, for one cycle; it is ack or err, not both."""
    asked = False
    while True:
        await RisingEdge(dut.clk)
        strobe = dut.wb_cyc_i.value == 1 and dut.wb_stb_i.value == 1
        answers = int(dut.wb_ack_o.value) + int(dut.wb_err_o.value)
        assert answers == asked
        asked = strobe and not answers


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def has_the_registers_of_the_map(dut: Any, stall: float) -> None:
    port = await start(dut, stall)
    await check_registers(port)
    await port.write("control", 1)  # there is no stream that responses could go to
    await check_strobes(port)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def runs_programs(dut: Any, stall: float) -> None:
    port = await start(dut, stall)
    host = Host(port)
    await run_random_program(host, seed=2)
    cocotb.log.info(f"{host.frames} frames, {port.wishbone.transfers} transfers")


@cocotb.test()
async def interrupts_when_a_run_ends(dut: Any) -> None:
    port = await start(dut, 0.3)
    await check_run_interrupt(Host(port), port, dut.irq, dut.clk)


@cocotb.test()
async def refuses_words_while_the_queue_is_full(dut: Any) -> None:
    await check_full_queues(await start(dut, 0.0))


@cocotb.test()
async def answers_block_cycles(dut: Any) -> None:
    """Reads, writes and errors in one cycle, whose strobe never falls."""
    port = await start(dut, 0.0)
    enable = port.registers["interrupt_enable"].offset // 4
    operations = [
        WBOp(0),
        WBOp(enable, 3),
        WBOp(enable),
        WBOp(0, 1),
        WBOp(enable, 0, sel=0b1110),
        WBOp(enable),
        WBOp(0x3FF),
        WBOp(enable, 1),
        WBOp(enable),
    ]
    answers = await port.wishbone.block(operations)
    assert [answer for answer, _ in answers] == [_ACK] * 3 + [_ERR] + [_ACK] * 2 + [_ERR] + [
        _ACK
    ] * 2
    words = [
        word
        for operation, (_, word) in zip(operations, answers, strict=True)
        if operation.dat is None
    ]
    assert words == [int.from_bytes(b"SLIP", "little"), 3, 3, 0, 1]


@cocotb.test()
async def ignores_a_strobe_outside_a_cycle(dut: Any) -> None:
    port = await start(dut, 0.0)
    dut.wb_stb_i.value = 1
    await ClockCycles(dut.clk, 5)
    dut.wb_stb_i.value = 0
    await check_registers(port)

"""Bursts across the clocks to a DDR3 chip that checks timing, against a list of words."""

import random
from typing import Any

import cocotb
from amaranth.hdl import DomainRenamer, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from slipstick_rtl.dram.burst_port import WORD_BYTES, burst_layout
from slipstick_rtl.dram.chips import MT41K256M16
from slipstick_rtl.dram.ddr3_memory import DDR3_DOMAIN, Ddr3Memory

from ..dram.ddr3_chip import Ddr3Model
from ..dram.ddr3_reads import window
from ..dram.violation import Ddr3Violation
from .bench_ddr3_initialiser import POWER_UP_SECONDS, ddr3_settings, verilog
from .drivers.streams import CLOCK_PERIOD_NS, Consumer, Producer, pack, start
from .registry import Bench, parameters

_SHARE = 0.85
"""Share of the peak rate, the chip's or the core's if that is less, that long bursts must reach."""
_ROW_WORDS = MT41K256M16.columns * MT41K256M16.data_bits // 8 // WORD_BYTES
_WORDS_HELD = MT41K256M16.banks * _ROW_WORDS
"""Words of one row of all banks: so many at either end of the addresses are in held rows."""


class Ddr3Unit(wiring.Component):
    """Crossings, port, controller and chip."""

    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
    idle: Signal
    ready: Signal
    failed: Signal
    violation: Signal
    refreshes: Signal

    def __init__(self, memory_mhz: int) -> None:
        settings = ddr3_settings(memory_mhz)
        self._memory = Ddr3Memory(settings=settings, power_up_seconds=POWER_UP_SECONDS)
        self._model = Ddr3Model(settings=settings)
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
                "ready": Out(1),
                "failed": Out(settings.chip.groups),
                "violation": Out(self._model.violation.shape()),
                "refreshes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory, model = self._memory, self._model
        m.submodules.memory = memory
        m.submodules.model = DomainRenamer(DDR3_DOMAIN)(model)
        connect(m, flipped(self.bursts), memory.bursts)
        connect(m, flipped(self.writes), memory.writes)
        connect(m, memory.reads, flipped(self.reads))
        connect(m, memory.chip, model.pins)
        windows = (window(1, 4, 2), window(3, 5, 1))
        m.d.comb += [
            *(
                model.windows[k][name].eq(value)
                for k, each in enumerate(windows)
                for name, value in each.items()
            ),
            self.idle.eq(memory.idle),
            self.ready.eq(memory.ready),
            self.failed.eq(memory.failed),
            self.violation.eq(model.violation),
            self.refreshes.eq(model.refreshes),
        ]
        return m


def make(core_mhz: int, memory_mhz: int) -> Ddr3Unit:
    """The unit; the core's clock is the simulation's alone."""
    return Ddr3Unit(memory_mhz)


BENCH = Bench(
    name="bench_ddr3",
    component=make,
    test_module=__name__,
    parameters=({"core_mhz": 110, "memory_mhz": 100},),
    thorough=({"core_mhz": 90, "memory_mhz": 75}, {"core_mhz": 50, "memory_mhz": 75}),
    others=verilog,
)


class _Dram:
    """Drives the bursts, and knows what must be there."""

    def __init__(self, dut: Any, seed: int, stall: float) -> None:
        self.dut = dut
        self.draw = random.Random(seed)
        self.settings = ddr3_settings(parameters()["memory_mhz"])
        self._layout = burst_layout(self.settings)
        self.words = 1 << self._layout["address"].width
        self._bursts = Producer(dut, "bursts", seed=seed, stall=stall)
        self._writes = Producer(dut, "writes", seed=seed + 1, stall=stall)
        self._reads = Consumer(dut, "reads", seed=seed + 2, stall=stall)
        self.held = dict[int, int]()

    async def start(self) -> None:
        core_hertz = parameters()["core_mhz"] * 1_000_000
        picoseconds = round(CLOCK_PERIOD_NS * 500 * core_hertz / self.settings.hertz) * 2
        Clock(self.dut.ddr3_clk, picoseconds, unit="ps").start()
        self.dut.ddr3_rst.value = 1
        await start(self.dut, reset_cycles=10)
        self.dut.ddr3_rst.value = 0
        await RisingEdge(self.dut.ready)
        await RisingEdge(self.dut.clk)
        assert self.dut.failed.value == 0

    async def burst(self, write: bool, address: int, count: int) -> None:
        fields = {"write": write, "address": address, "last": count - 1}
        await self._bursts.send([pack(self._layout, fields)])

    async def write(self, address: int, count: int) -> None:
        words = [self.draw.getrandbits(8 * WORD_BYTES) for _ in range(count)]
        self.held.update(zip(range(address, address + count), words, strict=True))
        sending = cocotb.start_soon(self._writes.send(words))
        await self.burst(True, address, count)
        await sending

    async def check(self, address: int, count: int) -> None:
        """Reads a burst and compares its words; those not written in this test may be anything."""
        receiving = self._reads.start(count)
        await self.burst(False, address, count)
        found = dict(enumerate(await receiving, start=address))
        known = {place: word for place, word in self.held.items() if place in found}
        assert {place: found[place] for place in known} == known

    async def settle(self) -> int:
        """Waits until all bursts have ended; returns the cycles."""
        cycles = 0
        while self.dut.idle.value != 1:
            await RisingEdge(self.dut.clk)
            cycles += 1
            assert cycles < 10_000
        return cycles

    def check_chip(self) -> None:
        assert Ddr3Violation(int(self.dut.violation.value)) is Ddr3Violation.NONE


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3, 0.9], seed=[1, 2, 3])
async def reads_what_was_written(dut: Any, stall: float, seed: int) -> None:
    """Bursts of all lengths, over the ends of rows and banks, twice to the same place.

    They begin and end with either half of the controller's words.
    """
    dram = _Dram(dut, seed, stall)
    await dram.start()
    row = _ROW_WORDS
    places = [dram.draw.randrange(_WORDS_HELD) for _ in range(4)]
    places += [0, row - 5, 8 * row - 3, dram.words - 400, dram.words - 8 * row - 7]
    for _ in range(40):
        place = dram.draw.choice(places) + dram.draw.randrange(8)
        count = dram.draw.choice((1, 2, 3, 4, 5, 17, 130, 300))
        if dram.draw.randrange(2):
            await dram.write(place, count)
        else:
            await dram.check(place, count)
    for place in places:
        await dram.check(place, 300)
    await dram.settle()
    dram.check_chip()


@cocotb.test()
@cocotb.parametrize(write=[False, True], step=[6000, 64])
async def fills_the_wire(dut: Any, write: bool, step: int) -> None:
    """At least 85 % of what the chip or the core's stream can, refreshes included.

    In one burst, or in many that lie side by side.
    """
    dram = _Dram(dut, 5, 0.0)
    await dram.start()
    await dram.write(0, 100)
    words = 6000
    receiving = None if write else dram._reads.start(words)
    sending = None
    if write:
        sending = dram._writes.start(range(words))
    cycles = 0

    async def count() -> None:
        nonlocal cycles
        while True:
            await RisingEdge(dut.clk)
            cycles += 1

    counting = cocotb.start_soon(count())
    for place in range(0, words, step):
        await dram.burst(write, 1000 + place, min(step, words - place))
    if receiving is not None:
        await receiving
    if sending is not None:
        await sending
    counting.cancel()
    core_hertz = parameters()["core_mhz"] * 1_000_000
    seconds = cycles / core_hertz
    peak = dram.settings.chip.peak_bytes_per_second(dram.settings.chip_hertz)
    reached = words * WORD_BYTES / seconds
    dut._log.info("%.1f MB/s of %.0f, %d cycles of the core", reached / 1e6, peak / 1e6, cycles)
    most = min(peak, WORD_BYTES * core_hertz)
    assert reached >= _SHARE * most, f"{reached / 1e6:.1f} MB/s, not {most / 1e6:.0f}"
    await dram.settle()
    dram.check_chip()


@cocotb.test()
async def answers_soon(dut: Any) -> None:
    """Single words: a microsecond at most, even if a refresh comes between."""
    dram = _Dram(dut, 8, 0.0)
    await dram.start()
    bank = _ROW_WORDS
    places = {"first": 0, "same row": 9, "other bank": bank + 3, "other row": 8 * bank + 5}
    for name, place in places.items():
        begin = get_sim_time("ns")
        await dram.check(place, 1)
        cycles = round((get_sim_time("ns") - begin) / CLOCK_PERIOD_NS)
        dut._log.info("%s: %d cycles of the core", name, cycles)
        assert cycles < 90
    dram.check_chip()


@cocotb.test()
async def is_idle_when_all_has_ended(dut: Any) -> None:
    """Not before a burst of writing has its words, even the last one."""
    dram = _Dram(dut, 7, 0.0)
    await dram.start()
    assert dut.idle.value == 1
    await dram.burst(True, 5, 3)
    await RisingEdge(dut.clk)
    for word in range(3):
        await ClockCycles(dut.clk, 50)
        assert dut.idle.value == 0
        await dram._writes.send([word])
    assert 0 < await dram.settle() < 100
    dram.held |= {5: 0, 6: 1, 7: 2}
    await dram.check(4, 5)
    await dram.settle()
    dram.check_chip()


@cocotb.test()
async def refreshes_often_enough(dut: Any) -> None:
    """Over so long that a period of a cycle too much would be seen."""
    dram = _Dram(dut, 6, 0.0)
    await dram.start()
    await dram.write(5, 10)
    cycles, first = 1_500_000, int(dut.refreshes.value)
    await ClockCycles(dut.ddr3_clk, cycles)
    wanted = cycles / dram.settings.hertz * 1e9 / dram.settings.chip.refresh_ns
    assert int(dut.refreshes.value) - first >= wanted - 1
    await dram.check(5, 10)
    dram.check_chip()

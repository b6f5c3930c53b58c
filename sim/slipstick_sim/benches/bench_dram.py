"""Bursts through LiteDRAM's controller to a chip that checks timing, against a list of words."""

import random
from typing import Any

import cocotb
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.dram.burst_port import WORD_BYTES, burst_layout
from slipstick_rtl.dram.chips import SdrChip, find_chip
from slipstick_rtl.dram.litedram import LiteDramSettings, litedram_verilog
from slipstick_rtl.dram.sdr_memory import SdrMemory

from ..dram.sdr_chip import SdrModel, cells_verilog
from ..dram.violation import Violation
from .drivers.streams import Consumer, Producer, pack, start
from .registry import Bench, parameters

_POWER_UP_SECONDS = 1e-6
_SHAPES = (
    {"chip": "MT48LC16M16", "hertz": 100_000_000},
    {"chip": "MT48LC16M16", "hertz": 133_000_000},
    {"chip": "M12L16161A", "hertz": 75_000_000},
)


class DramUnit(wiring.Component):
    """Port, controller and chip."""

    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
    idle: Signal
    ready: Signal
    violation: Signal
    refreshes: Signal

    def __init__(self, *, settings: LiteDramSettings) -> None:
        self._memory = SdrMemory(settings=settings, power_up_seconds=_POWER_UP_SECONDS)
        self._model = SdrModel(chip=settings.chip, hertz=settings.hertz)
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
                "ready": Out(1),
                "violation": Out(self._model.violation.shape()),
                "refreshes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.model = model = self._model
        m.submodules.memory = memory = self._memory
        connect(m, flipped(self.bursts), memory.bursts)
        connect(m, flipped(self.writes), memory.writes)
        connect(m, memory.reads, flipped(self.reads))
        connect(m, memory.chip, model.pins)
        m.d.comb += [
            self.idle.eq(memory.idle),
            self.ready.eq(memory.ready),
            self.violation.eq(model.violation),
            self.refreshes.eq(model.refreshes),
        ]
        return m


def _settings(shape: dict[str, Any]) -> LiteDramSettings:
    chip = find_chip(shape["chip"])
    assert isinstance(chip, SdrChip)
    return LiteDramSettings(chip=chip, hertz=shape["hertz"])


def make(**shape: Any) -> DramUnit:
    """The unit for a clock."""
    return DramUnit(settings=_settings(shape))


def _others(rtlil: str) -> str:
    # a simulation has one controller, and cells of its chip
    settings = next(each for each in map(_settings, _SHAPES) if each.name in rtlil)
    return litedram_verilog(settings) + cells_verilog(settings.chip)


BENCH = Bench(
    name="bench_dram",
    component=make,
    test_module=__name__,
    parameters=_SHAPES[:1],
    thorough=_SHAPES[1:],
    others=_others,
)


class _Dram:
    """Drives the port, and knows what must be there."""

    def __init__(self, dut: Any, seed: int, stall: float) -> None:
        self.dut = dut
        self.draw = random.Random(seed)
        self._layout = burst_layout(_settings(parameters()))
        self.words = 1 << self._layout["address"].width
        self._bursts = Producer(dut, "bursts", seed=seed, stall=stall)
        self._writes = Producer(dut, "writes", seed=seed + 1, stall=stall)
        self._reads = Consumer(dut, "reads", seed=seed + 2, stall=stall)
        self.held = dict[int, int]()

    async def start(self) -> None:
        await start(self.dut)
        while self.dut.ready.value != 1:
            await RisingEdge(self.dut.clk)

    async def _burst(self, write: bool, address: int, count: int) -> None:
        fields = {"write": write, "address": address, "last": count - 1}
        await self._bursts.send([pack(self._layout, fields)])

    async def write(self, address: int, count: int) -> None:
        words = [self.draw.getrandbits(8 * WORD_BYTES) for _ in range(count)]
        self.held.update(zip(range(address, address + count), words, strict=True))
        sending = cocotb.start_soon(self._writes.send(words))
        await self._burst(True, address, count)
        await sending

    async def check(self, address: int, count: int) -> None:
        """Reads a burst and compares its words; those not written in this test may be anything."""
        receiving = self._reads.start(count)
        await self._burst(False, address, count)
        found = dict(enumerate(await receiving, start=address))
        known = {place: word for place, word in self.held.items() if place in found}
        assert {place: found[place] for place in known} == known

    def check_chip(self) -> None:
        assert Violation(int(self.dut.violation.value)) is Violation.NONE


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3, 0.9], seed=[1, 2, 3])
async def reads_what_was_written(dut: Any, stall: float, seed: int) -> None:
    """Bursts of all lengths, over the ends of rows and banks, twice to the same place."""
    dram = _Dram(dut, seed, stall)
    await dram.start()
    places = [dram.draw.randrange(dram.words - 600) for _ in range(4)]
    places += [0, 120, 127, dram.words - 600, 512 * 4 * 2 // 4 - 5]
    for _ in range(40):
        place = dram.draw.choice(places) + dram.draw.randrange(8)
        count = dram.draw.choice((1, 2, 3, 17, 130, 300))
        if dram.draw.randrange(2):
            await dram.write(place, count)
        else:
            await dram.check(place, count)
    for place in places:
        await dram.check(place, 300)
    dram.check_chip()


@cocotb.test()
@cocotb.parametrize(write=[False, True])
async def fills_the_wire(dut: Any, write: bool) -> None:
    """At least 90 % of the chip's peak, refreshes included."""
    dram = _Dram(dut, 5, 0.0)
    await dram.start()
    await dram.write(0, 100)
    cycles = 0

    async def count() -> None:
        nonlocal cycles
        while True:
            await RisingEdge(dut.clk)
            cycles += 1

    words = 6000
    counting = cocotb.start_soon(count())
    await (dram.write if write else dram.check)(1000, words)
    counting.cancel()
    peak = words * WORD_BYTES * 8 // _settings(parameters()).chip.data_bits
    assert cycles < peak / 0.9, f"{words} words took {cycles} cycles, not about {peak}"
    dram.check_chip()


@cocotb.test()
async def refreshes_often_enough(dut: Any) -> None:
    """Over so long that a period of a cycle too much would be seen."""
    dram = _Dram(dut, 6, 0.0)
    await dram.start()
    await dram.write(5, 10)
    cycles, first = 2_000_000, int(dut.refreshes.value)
    await ClockCycles(dut.clk, cycles)
    settings = _settings(parameters())
    chip = settings.chip
    wanted = cycles * chip.rows / (chip.refresh_ms * 1e-3 * settings.hertz)
    assert int(dut.refreshes.value) - first >= wanted - 1
    await dram.check(5, 10)
    dram.check_chip()

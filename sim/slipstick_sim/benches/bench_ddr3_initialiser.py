"""The commands after power-up and the read levelling, for windows of delays at all places."""

import random
from typing import Any

import cocotb
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect
from cocotb.triggers import ClockCycles, First, RisingEdge
from slipstick_rtl.dram.chips import MT41K256M16
from slipstick_rtl.dram.ddr3 import Ddr3Settings, ddr3_verilog
from slipstick_rtl.dram.ddr3_controller import Ddr3Controller
from slipstick_rtl.dram.ddr3_leveller import DELAYS, LEVEL, SLIPS

from ..dram.ddr3_chip import Ddr3Model, ddr3_cells_verilog
from ..dram.ddr3_reads import WINDOW, Window, window
from ..dram.violation import Ddr3Violation
from .drivers.streams import pack, start, unpack
from .registry import Bench

POWER_UP_SECONDS = 1e-6
_GROUPS = MT41K256M16.groups
WINDOWS = data.ArrayLayout(WINDOW, _GROUPS)
_LEVELS = data.ArrayLayout(LEVEL, _GROUPS)
_MOST_CYCLES = 100_000
MEMORY_MHZ = (75, 100)
"""Clocks of the controller, those of the boards."""


def ddr3_settings(memory_mhz: int) -> Ddr3Settings:
    """Returns the settings of the chip with a controller of that clock."""
    return Ddr3Settings(chip=MT41K256M16, hertz=memory_mhz * 1_000_000)


class Ddr3Unit(wiring.Component):
    """Controller and chip."""

    windows: data.View
    levels: data.View
    ready: Signal
    failed: Signal
    violation: Signal
    refreshes: Signal

    def __init__(self, memory_mhz: int) -> None:
        settings = ddr3_settings(memory_mhz)
        self._controller = Ddr3Controller(settings=settings, power_up_seconds=POWER_UP_SECONDS)
        self._model = Ddr3Model(settings=settings)
        super().__init__(
            {
                "windows": In(WINDOWS),
                "levels": Out(_LEVELS),
                "ready": Out(1),
                "failed": Out(_GROUPS),
                "violation": Out(self._model.violation.shape()),
                "refreshes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.controller, m.submodules.model = controller, model = (
            self._controller,
            self._model,
        )
        connect(m, controller.chip, model.pins)
        m.d.comb += [
            model.windows.eq(self.windows),
            self.levels.eq(controller.levels),
            self.ready.eq(controller.ready),
            self.failed.eq(controller.failed),
            self.violation.eq(model.violation),
            self.refreshes.eq(model.refreshes),
        ]
        return m


def verilog(rtlil: str) -> str:
    """Returns the Verilog beside a unit: that of the controller and of the chip's contents."""
    [settings] = (each for each in map(ddr3_settings, MEMORY_MHZ) if each.name in rtlil)
    return ddr3_verilog(settings) + ddr3_cells_verilog(settings)


BENCH = Bench(
    name="bench_ddr3_initialiser",
    component=Ddr3Unit,
    test_module=__name__,
    parameters=({"memory_mhz": 75},),
    thorough=({"memory_mhz": 100},),
    others=verilog,
)


async def _level(dut: Any, windows: list[Window]) -> list[Window]:
    """Powers up with windows; returns what was found, a width of 0 for what has failed."""
    dut.windows.value = pack(WINDOWS, dict(enumerate(windows)))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await First(RisingEdge(dut.ready), ClockCycles(dut.clk, _MOST_CYCLES))
    assert dut.ready.value == 1
    await RisingEdge(dut.clk)
    assert Ddr3Violation(int(dut.violation.value)) is Ddr3Violation.NONE
    found: Any = unpack(_LEVELS, int(dut.levels.value))
    failed = int(dut.failed.value)
    for k, level in enumerate(found):
        assert bool(failed >> k & 1) == (level["width"] == 0)
    return found


def _expected(given: Window) -> Window:
    middle = (given["first"] + given["last"]) // 2
    width = given["last"] - given["first"] + 1
    return {"delay": middle, "slip": given["slip"], "width": width}


@cocotb.test()
async def finds_every_window(dut: Any) -> None:
    """Each byte its own: all places and widths, at all slips."""
    await start(dut)
    windows = [
        window(first, last, slip)
        for first in range(DELAYS)
        for last in range(first, DELAYS)
        for slip in range(SLIPS)
    ]
    others = random.Random(1).sample(windows, len(windows))
    for pair in zip(windows, others, strict=True):
        assert await _level(dut, list(pair)) == [_expected(each) for each in pair], pair


@cocotb.test()
@cocotb.parametrize(
    missing=[{"exists": 0}, {"strobe": 0}],
    group=[0, 1],
)
async def says_which_byte_has_none(dut: Any, missing: dict[str, int], group: int) -> None:
    """No delay is right, or the strobe is never seen; the other byte has its window."""
    await start(dut)
    windows = [window(2, 4, 1), window(3, 6, 2)]
    windows[group] |= missing
    found = await _level(dut, windows)
    assert found[group]["width"] == 0
    assert found[1 - group] == _expected(windows[1 - group])


@cocotb.test()
async def says_that_both_have_none(dut: Any) -> None:
    await start(dut)
    found = await _level(dut, [window(0, 7, 0, exists=0), window(0, 7, 0, exists=0)])
    assert [level["width"] for level in found] == [0, 0]


@cocotb.test()
async def refreshes_while_it_levels(dut: Any) -> None:
    await start(dut)
    await _level(dut, [window(1, 3, 1), window(1, 3, 1)])
    assert int(dut.refreshes.value) > 5

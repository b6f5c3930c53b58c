"""UpdateArithmetic against the golden update: each shift, a weight per cycle."""

import random
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import wiring
from cocotb.triggers import RisingEdge
from slipstick_rtl.dma.transfer import SHIFT_BITS
from slipstick_rtl.dma.update_arithmetic import UpdateArithmetic

from ..golden import training
from ..netlist import ecp5_cells
from .drivers.on_chip import DEVICE, ECP5, OnChip
from .drivers.streams import start
from .registry import Bench
from .stimulus.random_update import random_master, random_sum

_COUNT = 400
"""Weights per shift."""
_SETTLING = 2
"""Cycles from a new shift to the first sum."""


def make(**shape: Any) -> wiring.Component:
    """The arithmetic; on a chip if the shape names one."""
    device = shape.pop(DEVICE, None)
    arithmetic = UpdateArithmetic()
    return arithmetic if device is None else OnChip(arithmetic, device)


BENCH = Bench(
    name="bench_update_arithmetic",
    component=make,
    test_module=__name__,
    parameters=({}, {DEVICE: ECP5}),
    verilog=ecp5_cells.verilog,
)


@cocotb.test()
@cocotb.parametrize(shift=range(1 << SHIFT_BITS))
async def masters_learn(dut: Any, shift: int) -> None:
    draw, latency = random.Random(shift), UpdateArithmetic().latency
    sums = np.array([random_sum(draw, shift) for _ in range(_COUNT)], np.int32)
    masters = np.array([random_master(draw) for _ in range(_COUNT)], np.int32)
    learned = training.update(masters, sums, shift, training.LARGEST_MASTER)
    dut.shift.value, dut.sum.value, dut.master.value = shift, 0, 0
    await start(dut)
    for _ in range(_SETTLING):
        await RisingEdge(dut.clk)
    for cycle in range(_COUNT + latency):
        if cycle < _COUNT:
            dut.sum.value, dut.master.value = int(sums[cycle]), int(masters[cycle])
        await RisingEdge(dut.clk)
        index = cycle - latency
        if index >= 0:
            got, expected = dut.updated.value.to_signed(), int(learned[index])
            assert got == expected, f"{masters[index]}, {sums[index]}: {got}, not {expected}"

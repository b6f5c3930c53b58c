"""Memories in look-up tables, and delays in them, as ECP5 gets them and as other chips do."""

from collections import deque
from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import RisingEdge
from slipstick_rtl.primitives.delay_memory import long_delay
from slipstick_rtl.primitives.small_memory import SmallMemory

from ..netlist import ecp5_cells
from .drivers.on_chip import DEVICE, ECP5, OnChip
from .drivers.streams import start
from .registry import Bench, parameters

_WORDS = 3000


class Memories(wiring.Component):
    """A small memory, and a delay of what is read from it; it begins as zeros.

    The memory's ports, and ``late``: ``o`` as it was ``cycles`` ago.
    """

    late: Signal

    def __init__(self, *, width: int, depth: int, cycles: int) -> None:
        self._memory: Any = SmallMemory(width=width, depth=depth)
        self._cycles = cycles
        super().__init__({**self._memory.signature.members, "late": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self._memory
        for name, member in memory.signature.members.items():
            inner, outer = getattr(memory, name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        m.d.comb += self.late.eq(long_delay(m, memory.o, self._cycles, "late"))
        return m


def make(**shape: Any) -> wiring.Component:
    """The memory of this shape; on a chip if the shape names one."""
    device = shape.pop(DEVICE, None)
    memories = Memories(**shape)
    return memories if device is None else OnChip(memories, device)


BENCH = Bench(
    name="bench_small_memory",
    component=make,
    test_module=__name__,
    parameters=(
        {"width": 7, "depth": 48, "cycles": 21},
        {"width": 7, "depth": 48, "cycles": 21, DEVICE: ECP5},
        {"width": 8, "depth": 16, "cycles": 7, DEVICE: ECP5},
    ),
    verilog=ecp5_cells.verilog,
)


@cocotb.test()
async def words(dut: Any) -> None:
    """Every word is what was last written there before, and comes out of the delay in its turn.

    Often the word that is being written is read.
    """
    shape = parameters()
    width, depth, cycles = (shape[name] for name in ("width", "depth", "cycles"))
    generator = np.random.default_rng(width)
    contents = [0] * depth
    before: deque[int] = deque()
    await start(dut)
    for _ in range(_WORDS):
        enable, word = int(generator.integers(2)), int(generator.integers(1 << width))
        written, read = (int(place) for place in generator.integers(depth, size=2))
        if generator.random() < 0.3:
            read = written
        dut.write_enable.value, dut.write_address.value, dut.i.value = enable, written, word
        dut.address.value = read
        await RisingEdge(dut.clk)
        assert dut.o.value.to_unsigned() == contents[read], f"word {read}"
        before.append(contents[read])
        if len(before) > cycles:
            assert dut.late.value.to_unsigned() == before.popleft()
        if enable:
            contents[written] = word

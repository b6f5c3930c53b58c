"""The primitives of iCE40, as other chips get them and as Yosys models the cells."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import RisingEdge
from slipstick_rtl.fpga.ecp5.netlist import Chip
from slipstick_rtl.primitives.dual_multiplier import DualMultiplier
from slipstick_rtl.primitives.load_adder import LoadAdder

from ..netlist import ice40_cells
from .drivers.streams import start
from .registry import Bench

WIDTH = 32
_VALUES = 3000


class Primitives(wiring.Component):
    """A multiplier and an adder as they are elaborated for a device."""

    a: Signal
    b: Signal
    load: Signal
    p: Signal
    x: Signal
    y: Signal
    o: Signal

    def __init__(self, *, device: str) -> None:
        self._chip = Chip(device) if device else None
        super().__init__(
            {
                "a": In(16),
                "b": In(16),
                "load": In(1),
                "p": Out(32),
                "x": In(WIDTH),
                "y": In(WIDTH),
                "o": Out(WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        multiplier, adder = DualMultiplier(), LoadAdder(width=WIDTH)
        m.submodules.multiplier = Fragment.get(multiplier, self._chip)
        m.submodules.adder = Fragment.get(adder, self._chip)
        m.d.comb += [
            multiplier.a.eq(self.a),
            multiplier.b.eq(self.b),
            multiplier.load.eq(self.load),
            self.p.eq(multiplier.p),
            adder.a.eq(self.x),
            adder.b.eq(self.y),
            adder.load.eq(self.load),
            self.o.eq(adder.o),
        ]
        return m


BENCH = Bench(
    name="bench_ice40",
    component=Primitives,
    test_module=__name__,
    parameters=({"device": ""}, {"device": "iCE40UP5K"}),
    verilog=ice40_cells.verilog,
)


def _halves(value: int) -> tuple[int, int]:
    low, high = np.array([value & 255, value >> 8], np.uint8).view(np.int8)
    return int(low), int(high)


@cocotb.test()
async def products_and_sums(dut: Any) -> None:
    """Two products of the bytes just given and those loaded last; a sum, or one operand of it."""
    generator = np.random.default_rng(4)
    corners = [0, 0x80, 0x7F, 0xFF, 0x8080, 0x7F80, 0xFFFF]
    await start(dut)
    loaded = expected = None
    for _ in range(_VALUES):
        a, b = (
            int(generator.choice(corners)) if generator.random() < 0.2 else int(value)
            for value in generator.integers(0, 1 << 16, 2)
        )
        x, y = (int(value) for value in generator.integers(0, 1 << WIDTH, 2))
        load = loaded is None or bool(generator.integers(0, 2))
        dut.a.value, dut.b.value, dut.load.value, dut.x.value, dut.y.value = a, b, load, x, y
        await RisingEdge(dut.clk)
        if expected is not None:
            assert dut.p.value.to_unsigned() == expected
        assert dut.o.value.to_unsigned() == (y if load else (x + y) % (1 << WIDTH))
        loaded = b if load else loaded
        assert loaded is not None
        low, high = (p * q & 0xFFFF for p, q in zip(_halves(a), _halves(loaded), strict=True))
        expected = low | high << 16

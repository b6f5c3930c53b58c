"""Multiplier18 against the plain product: as other chips get it, and as a block of ECP5."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import wiring
from cocotb.triggers import RisingEdge
from slipstick_rtl.primitives.multiplier18 import Multiplier18

from ..netlist import mult18x18d
from .drivers.on_chip import ECP5, OnChip
from .drivers.streams import start
from .registry import Bench, parameters

_VALUES = 3000


def _shape(name: str) -> Shape:
    """``s16``, ``u15``."""
    return (signed if name[0] == "s" else unsigned)(int(name[1:]))


def make(a: str, b: str, device: str) -> wiring.Component:
    """The multiplier of these operands on that device; on none if that is empty."""
    multiplier = Multiplier18(a=_shape(a), b=_shape(b))
    return OnChip(multiplier, device) if device else multiplier


_OPERANDS = (("s8", "s8"), ("s16", "u16"), ("u16", "u15"), ("u17", "s18"))

BENCH = Bench(
    name="bench_multiplier18",
    component=make,
    test_module=__name__,
    parameters=(
        {"a": "s16", "b": "u16", "device": ""},
        *({"a": a, "b": b, "device": ECP5} for a, b in _OPERANDS),
    ),
    verilog=mult18x18d.verilog,
)


def _values(generator: np.random.Generator, shape: Shape) -> np.ndarray:
    low = -(1 << shape.width - 1) if shape.signed else 0
    high = low + (1 << shape.width)
    values = generator.integers(low, high, _VALUES)
    corners = generator.choice([low, low + 1, -1 if low else 0, 0, 1, high - 1], _VALUES)
    return np.where(generator.random(_VALUES) < 0.2, corners, values)


@cocotb.test()
async def products(dut: Any) -> None:
    """A product a cycle, each ``latency`` cycles after its operands."""
    generator = np.random.default_rng(3)
    shapes = [_shape(parameters()[name]) for name in "ab"]
    a, b = (_values(generator, shape) for shape in shapes)
    any_signed = any(shape.signed for shape in shapes)
    await start(dut)
    for cycle in range(_VALUES + Multiplier18.latency):
        if cycle < _VALUES:
            dut.a.value, dut.b.value = int(a[cycle]), int(b[cycle])
        await RisingEdge(dut.clk)
        index = cycle - Multiplier18.latency
        if index >= 0:
            got = dut.p.value.to_signed() if any_signed else dut.p.value.to_unsigned()
            assert got == int(a[index]) * int(b[index]), f"{a[index]} x {b[index]} = {got}"

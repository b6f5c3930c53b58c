"""Elements with logarithmic weights against the formula, every activation with every weight."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Fragment, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import RisingEdge
from slipstick_rtl.array.processing_element import ProcessingElement, element_latency
from slipstick_rtl.experiments.mixed_arithmetic import MixedArithmetic
from slipstick_rtl.experiments.mixed_format import MixedFormat
from slipstick_rtl.fpga.ecp5.netlist import Chip
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.log_format import LogFormat

from ..netlist import ecp5_cells
from .drivers.streams import start
from .registry import Bench, parameters

_PIXELS = 8
"""Activations that meet a weight at once: so many products in a cycle."""

_WEIGHT_CYCLES = 2
"""Cycles from a weight to its activations: captured, at work."""


class LogElementUnit(wiring.Component):
    """One element that takes a new weight in every cycle; on a device if one is named."""

    activations: data.View
    weight: Signal
    above: data.View
    sums: data.View

    def __init__(self, *, element_format: LogFormat | MixedFormat, device: str) -> None:
        self._format = element_format
        self._chip = Chip(device) if device else None
        above, below = (self._format.partial_sum(rows) for rows in (1, 2))
        super().__init__(
            {
                "activations": In(data.ArrayLayout(signed(8), _PIXELS)),
                "weight": In(signed(8)),
                "above": In(data.ArrayLayout(above, _PIXELS)),
                "sums": Out(data.ArrayLayout(below, _PIXELS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        element: Any = ProcessingElement(number_format=self._format, pixels=_PIXELS, rows_above=1)
        m.submodules.element = Fragment.get(element, self._chip)
        m.d.comb += [
            element.weight.eq(self._format.store(self.weight)),
            element.capture.eq(1),
            element.swap.eq(1),
            Value.cast(element.partial_sums).eq(Value.cast(self.above)),
            Value.cast(self.sums).eq(Value.cast(element.partial_sums_out)),
        ]
        for p in range(_PIXELS):
            encoded = self._format.encode(self.activations[p])
            m.d.comb += Value.cast(element.activations[p]).eq(encoded)
        return m


def _arithmetic(number_format: str, linear: int) -> ArrayArithmetic | MixedArithmetic:
    """Returns the arithmetic of weights of a format.

    Activations are of the same format or, if ``linear``, of int8.
    """
    lns = Lns.parse(number_format)
    return MixedArithmetic(lns) if linear else ArrayArithmetic(lns)


def _format(arithmetic: ArrayArithmetic | MixedArithmetic) -> LogFormat | MixedFormat:
    if isinstance(arithmetic, MixedArithmetic):
        return MixedFormat(arithmetic)
    return LogFormat(arithmetic)


def make(number_format: str, device: str = "", linear: int = 0) -> LogElementUnit:
    """The element of this format."""
    element_format = _format(_arithmetic(number_format, linear))
    return LogElementUnit(element_format=element_format, device=device)


BENCH = Bench(
    name="bench_log_element",
    component=make,
    test_module=__name__,
    parameters=(
        {"number_format": "lns1+3+2"},
        {"number_format": "lns1+2+2", "device": "LFE5U-85F"},
        {"number_format": "lns1+4+0", "linear": 1},
        {"number_format": "lns1+3+2", "linear": 1, "device": "LFE5U-85F"},
    ),
    thorough=(
        {"number_format": "lns1+4+3"},
        {"number_format": "lns1+3+4", "device": "LFE5U-85F"},
    ),
    verilog=ecp5_cells.verilog,
)


def _packed(values: np.ndarray, bits: int) -> int:
    return sum((int(value) & ((1 << bits) - 1)) << bits * k for k, value in enumerate(values))


@cocotb.test()
async def all_products(dut: Any) -> None:
    """Each activation with each weight, added to other products."""
    given = parameters()
    linear = given.get("linear", 0)
    arithmetic = _arithmetic(given["number_format"], linear)
    number_format = _format(arithmetic)
    largest = arithmetic.lns.largest_code
    codes = np.arange(-largest, largest + 1)
    entering = np.arange(-128, 128) if linear else codes
    groups = -(-len(entering) // _PIXELS)
    rounds = np.resize(entering, (groups, _PIXELS))
    activations = np.tile(rounds, (len(codes), 1))
    weights = np.repeat(codes, groups)
    generator = np.random.default_rng(1)
    others = (generator.choice(values, activations.shape) for values in (entering, codes))
    above = arithmetic.multiply(*others)
    above[::7] = arithmetic.multiply(entering[0], -largest)
    expected = above + arithmetic.multiply(activations, weights[:, None])
    latency = element_latency(number_format)
    above_bits, bits = (number_format.partial_sum(rows).width for rows in (1, 2))
    count = len(weights)
    await start(dut)
    for cycle in range(_WEIGHT_CYCLES + count + latency + 1):
        if cycle < count:
            dut.weight.value = int(weights[cycle])
        entered = cycle - _WEIGHT_CYCLES
        if 0 <= entered < count:
            dut.activations.value = _packed(activations[entered], 8)
        if 0 <= entered - latency + 1 < count:
            dut.above.value = _packed(above[entered - latency + 1], above_bits)
        await RisingEdge(dut.clk)
        if 0 <= entered - latency < count:
            got = dut.sums.value.to_unsigned()
            index = entered - latency
            assert got == _packed(expected[index], bits), (activations[index], weights[index])

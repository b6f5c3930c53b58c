"""A packed pair of elements against the products, for every activation with every weight."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Fragment, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import RisingEdge
from slipstick_rtl.array.packed_pair import UNPACK_CYCLES, PackedPair, Unpacker
from slipstick_rtl.array.processing_element import element_latency
from slipstick_rtl.fpga.ecp5.netlist import Chip
from slipstick_rtl.numbers import packing
from slipstick_rtl.numbers.int8 import Int8

from ..netlist import ecp5_cells
from .drivers.streams import start
from .registry import Bench

_WEIGHT_CYCLES = 2
"""Cycles from a weight to its activation: captured, at work."""

LATENCY = element_latency(Int8()) + UNPACK_CYCLES


class PairUnit(wiring.Component):
    """One pair and its unpacker; the second product is a cycle later than the first.

    On a device if one is named.
    """

    activation: Signal
    low: Signal
    high: Signal
    first: Signal
    second: Signal

    def __init__(self, *, device: str) -> None:
        self._chip = Chip(device) if device else None
        byte = signed(8)
        super().__init__(
            {
                "activation": In(byte),
                "low": In(byte),
                "high": In(byte),
                "first": Out(signed(16)),
                "second": Out(signed(16)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pair: Any = PackedPair(pixels=1, rows_above=0)
        unpacker: Any = Unpacker(number_format=Int8(), rows=1)
        m.submodules.pair = Fragment.get(pair, self._chip)
        m.submodules.unpacker = Fragment.get(unpacker, self._chip)
        m.d.comb += [
            pair.activations[0].value.eq(self.activation),
            pair.activations[0].edge.eq(packing.edge(self.activation)),
            pair.weight.eq(packing.store(self.low, self.high)),
            pair.capture.eq(1),
            pair.swap.eq(1),
            unpacker.i.eq(pair.partial_sums_out[0]),
            self.first.eq(unpacker.o[0]),
            self.second.eq(unpacker.o[1]),
        ]
        return m


def make(device: str) -> PairUnit:
    """The pair on this device; on none if that is empty."""
    return PairUnit(device=device)


BENCH = Bench(
    name="bench_pair",
    component=make,
    test_module=__name__,
    parameters=({"device": ""}, {"device": "LFE5U-85F"}),
    verilog=ecp5_cells.verilog,
)


@cocotb.test()
async def all_products(dut: Any) -> None:
    """Each activation with each low weight and, in another order, with each high one."""
    generator = np.random.default_rng(1)
    codes = np.arange(-128, 128)
    activations = np.repeat(codes, 256)
    low = np.tile(codes, 256)
    high = np.concatenate([generator.permutation(codes) for _ in codes])
    # the extremes meet too
    corners = np.array(np.meshgrid(*[[-128, -127, -1, 0, 1, 127]] * 3)).reshape(3, -1)
    activations, low, high = np.hstack([[activations, low, high], corners])
    count = len(activations)
    first, second = np.zeros(count, int), np.zeros(count, int)
    await start(dut)
    for cycle in range(_WEIGHT_CYCLES + count + LATENCY + 1):
        if cycle < count:
            dut.low.value, dut.high.value = int(low[cycle]), int(high[cycle])
        if 0 <= cycle - _WEIGHT_CYCLES < count:
            dut.activation.value = int(activations[cycle - _WEIGHT_CYCLES])
        await RisingEdge(dut.clk)
        index = cycle - _WEIGHT_CYCLES - LATENCY
        if 0 <= index < count:
            first[index] = dut.first.value.to_signed()
        if 0 < index <= count:
            second[index - 1] = dut.second.value.to_signed()
    np.testing.assert_array_equal(first, activations * low)
    np.testing.assert_array_equal(second, activations * high)

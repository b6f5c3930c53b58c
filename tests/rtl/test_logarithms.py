"""Gateware of logarithmic formats: what its surroundings rely on, beside what benches compare."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from slipstick_rtl import rtlil
from slipstick_rtl.array.processing_element import element_latency
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.ecp5.netlist import Chip
from slipstick_rtl.numbers.number_format import number_format
from slipstick_rtl.postprocess.distances import FIELDS_PERIOD, landing_distance
from slipstick_rtl.postprocess.log_requantizer import LogRequantizer
from slipstick_rtl.postprocess.requantizer import Requantizer
from slipstick_rtl.primitives.constant_table import look_up, small_look_up

CHIP = Chip("LFE5U-85F")
ENTRIES = [7, 3, 0, 5, 7, 1, 6, 4]


def test_both_requantisers_take_as_long() -> None:
    """Distances, and the cycle model with them, are the same for every number format."""
    assert LogRequantizer.latency == Requantizer.latency
    assert LogRequantizer.clamp_delay == Requantizer.clamp_delay
    assert max(field.delay for field in LogRequantizer.fields.values()) < FIELDS_PERIOD
    plain, logarithmic = Configuration(), Configuration(number_format="lns1+3+4")
    assert landing_distance(plain) == landing_distance(logarithmic)


@pytest.mark.parametrize(
    ("name", "latency"),
    [("lns1+2+2", 2), ("lns1+3+2", 2), ("lns1+1+3", 3), ("lns1+3+4", 4), ("lns1+4+3", 4)],
)
def test_elements_of_few_fraction_bits_shift_and_add_in_one_cycle(name: str, latency: int) -> None:
    assert element_latency(number_format(Configuration(number_format=name))) == latency


@pytest.mark.parametrize("name", ["lns1+2+2", "lns1+3+2", "lns1+4+3"])
def test_partial_sums_hold_the_largest_products(name: str) -> None:
    configuration = Configuration(number_format=name)
    assert configuration.logarithmic is not None
    products = configuration.logarithmic.products
    for rows in (1, 3, 64):
        bits = number_format(configuration).partial_sum(rows).width
        # and not a bit more than that takes, beside the sign and the carry
        assert -(1 << (bits - 1)) <= rows * int(products.min())
        assert rows * int(products.max()) >= 1 << (bits - 3)


@pytest.mark.parametrize("chip", [None, CHIP], ids=["plain", "ECP5"])
def test_a_small_table_is_a_cell_a_bit(chip: Any) -> None:
    index, found = Signal(3), Signal(3)
    m = Module()
    m.d.comb += found.eq(small_look_up(m, chip, ENTRIES, index, "table"))
    text = rtlil.convert(m, platform=chip, ports=[index, found])
    assert text.count("cell \\LUT4") == (3 if chip else 0)


def test_bits_that_are_always_one_need_no_cell() -> None:
    index, found = Signal(3), Signal(4)
    m = Module()
    m.d.comb += found.eq(small_look_up(m, CHIP, [8 | entry for entry in ENTRIES], index, "table"))
    assert rtlil.convert(m, platform=CHIP, ports=[index, found]).count("cell \\LUT4") == 3


def test_a_table_gives_its_entries() -> None:
    index, found = Signal(3), Signal(3)
    m = Module()
    m.d.comb += found.eq(look_up(np.array(ENTRIES), index))
    seen: list[int] = []

    async def look(context: Any) -> None:
        for place in range(len(ENTRIES)):
            context.set(index, place)
            seen.append(context.get(found))

    simulator = Simulator(m)
    simulator.add_testbench(look)
    simulator.run()
    assert seen == ENTRIES

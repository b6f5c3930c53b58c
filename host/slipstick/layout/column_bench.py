"""cocotb tests of a laid out column: sums of products against the golden model's."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from .blocks import element_format
from .products import WEIGHT_CYCLES, codes, operands, products

_ROUNDS = 2_000


@cocotb.test()
async def sums_of_products(dut: Any) -> None:
    """Every row has a new weight and activation in each cycle, a cycle after the row above."""
    from slipstick_sim.benches.drivers.streams import start
    from slipstick_sim.benches.registry import parameters

    name, rows = parameters()["number_format"], parameters()["rows"]
    form = element_format(name)
    latency, bits = form.multiplier_latency + rows, form.partial_sum(rows).width
    activations, weights = (operands(name, (_ROUNDS, rows), seed) for seed in range(2))
    expected = products(name, activations, weights).sum(axis=1)
    stored = codes(form.store, form.stored_weight.width)
    encoded = codes(form.encode, form.activation.width)
    await start(dut)
    for row in range(rows):
        getattr(dut, f"capture_{row}").value = 1
        getattr(dut, f"swap_{row}").value = 1
    for cycle in range(WEIGHT_CYCLES + _ROUNDS + latency + 1):
        for row in range(rows):
            k = cycle - row
            if 0 <= k < _ROUNDS:
                getattr(dut, f"weight_{row}").value = stored[int(weights[k, row])]
            k -= WEIGHT_CYCLES
            if 0 <= k < _ROUNDS:
                getattr(dut, f"activations_{row}").value = encoded[int(activations[k, row])]
        await RisingEdge(dut.clk)
        k = cycle - WEIGHT_CYCLES - latency
        if 0 <= k < _ROUNDS:
            got = dut.sums.value.to_unsigned()
            assert got == int(expected[k]) & ((1 << bits) - 1), (k, activations[k], weights[k])

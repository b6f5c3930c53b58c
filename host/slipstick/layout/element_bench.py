"""cocotb tests of a laid out element: products and sums against the golden model's."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from .blocks import element_format
from .products import WEIGHT_CYCLES, codes, operands, products

_ROUNDS = 4_000


@cocotb.test()
async def products_and_sums(dut: Any) -> None:
    """Each activation meets another weight; the product is added to a sum from above."""
    from slipstick_sim.benches.drivers.streams import start
    from slipstick_sim.benches.registry import parameters

    name = parameters()["number_format"]
    form = element_format(name)
    latency = form.multiplier_latency + 1
    above_bits, bits = (form.partial_sum(rows).width for rows in (1, 2))
    activations, weights, *others = (operands(name, (_ROUNDS,), seed) for seed in range(4))
    above = products(name, *others)
    expected = above + products(name, activations, weights)
    stored = codes(form.store, form.stored_weight.width)
    encoded = codes(form.encode, form.activation.width)
    await start(dut)
    dut.capture.value = 1
    dut.swap.value = 1
    for cycle in range(WEIGHT_CYCLES + _ROUNDS + latency + 1):
        if cycle < _ROUNDS:
            dut.weight.value = stored[int(weights[cycle])]
        entered = cycle - WEIGHT_CYCLES
        if 0 <= entered < _ROUNDS:
            dut.activations.value = encoded[int(activations[entered])]
        if 0 <= entered - latency + 1 < _ROUNDS:
            dut.partial_sums.value = int(above[entered - latency + 1]) & ((1 << above_bits) - 1)
        await RisingEdge(dut.clk)
        k = entered - latency
        if 0 <= k < _ROUNDS:
            got = dut.partial_sums_out.value.to_unsigned()
            assert got == int(expected[k]) & ((1 << bits) - 1), (k, activations[k], weights[k])

"""Two rows that share registers of sums: products of both, and what stands above them."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.sim import Simulator
from slipstick_rtl.array.processing_element import element_latency
from slipstick_rtl.array.row_pair import RowPair
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.number_format import number_format

FORMATS = ["int8", "lns1+2+2", "lns1+3+2", "lns1+3+4"]
VECTORS = 60


@pytest.mark.parametrize("above", [0, 6])
@pytest.mark.parametrize("name", FORMATS)
def test_sums_are_exact(name: str, above: int) -> None:
    """With random operands, and with the largest ones of both signs in both rows."""
    configuration = Configuration(number_format=name, silicon=1, weight_rows=4)
    form, arithmetic = number_format(configuration), configuration.logarithmic
    assert configuration.rows_together == 2
    pair = RowPair(number_format=form, pixels=1, rows_above=above)
    low, high = configuration.format.lowest, configuration.format.largest
    draw = np.random.default_rng(1)
    corners = np.array([low, high, 0, -1, 1])
    bounds = np.array([-1, 1]) * above * abs(_multiply(arithmetic, low, low))

    m = Module()
    m.submodules.pair = pair
    weights = [Signal(signed(8), name=f"weight_{k}") for k in range(2)]
    activations = [Signal(signed(8), name=f"activation_{k}") for k in range(2)]
    for k in range(2):
        m.d.comb += [
            Value.cast(pair.weight[k]).eq(form.store(weights[k])),
            Value.cast(pair.activations[k][0]).eq(form.encode(activations[k])),
        ]
    latency = element_latency(form)
    found, expected = list[int](), list[int]()

    async def bench(context):
        for turn in range(6):
            chosen = [
                int(draw.choice(corners) if turn else draw.integers(low, high + 1)) for _ in weights
            ]
            for signal, weight in zip(weights, chosen, strict=True):
                context.set(signal, weight)
            context.set(pair.capture, 3)
            await context.tick()
            context.set(pair.capture, 0)
            context.set(pair.swap, 1)
            await context.tick()
            context.set(pair.swap, 0)
            await context.tick().repeat(6)
            products = list[int]()
            for cycle in range(VECTORS + latency):
                given = [
                    int(draw.choice(corners) if cycle % 2 else draw.integers(low, high + 1))
                    for _ in weights
                ]
                for signal, activation in zip(activations, given, strict=True):
                    context.set(signal, activation)
                products.append(
                    sum(_multiply(arithmetic, *each) for each in zip(given, chosen, strict=True))
                )
                sum_above = int(
                    draw.choice(bounds) if cycle % 3 else draw.integers(bounds[0], bounds[1] + 1)
                )
                context.set(Value.cast(pair.partial_sums), sum_above)
                await context.tick()
                if cycle + 1 >= latency:
                    found.append(context.get(pair.partial_sums_out[0]))
                    expected.append(products[cycle + 1 - latency] + sum_above)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == expected


def _multiply(arithmetic, a: int, b: int) -> int:
    return a * b if arithmetic is None else int(arithmetic.multiply(a, b))

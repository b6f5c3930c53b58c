"""Arrays with logarithmic sums, and elements of wide formats with linear ones."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator
from slipstick_rtl.array.processing_element import ProcessingElement, element_latency
from slipstick_rtl.numbers.lns.arithmetic import LnsArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.log_format import LogFormat
from slipstick_rtl.numbers.lns.log_sums import LogSumArray
from slipstick_rtl.numbers.lns.wide_arithmetic import WideArithmetic

VECTORS = 12


def random_words(lns: Lns, generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Words around 1, some of them 0."""
    spread = min(lns.largest, 3 << lns.fraction_bits)
    exponents = generator.integers(-spread, spread + 1, shape)
    exponents[generator.random(shape) < 0.1] = lns.zero
    return lns.to_word(generator.random(shape) < 0.5, exponents)


def sums_down(lns: Lns, activations: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Words of the sums of products, (vectors, columns), added from the first row to the last."""
    arithmetic = LnsArithmetic(lns)
    codes, weight_codes = (lns.to_code(*lns.from_word(words)) for words in (activations, weights))
    total = arithmetic.multiply(codes[:, :1], weight_codes[0])
    for row in range(1, len(weights)):
        product = arithmetic.multiply(codes[:, row : row + 1], weight_codes[row])
        total = arithmetic.add(total, product)
    return lns.to_word(*lns.from_code(total))


def packed(words: np.ndarray, bits: int) -> int:
    return sum(int(word) << bits * place for place, word in enumerate(words))


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("lns1+3+4", 5, 3), ("lns1+3+2", 2, 1), ("lns1+6+6", 3, 2), ("lns1+5+8", 4, 2)],
)
def test_array_with_logarithmic_sums(name: str, rows: int, columns: int) -> None:
    lns, generator = Lns.parse(name), np.random.default_rng(1)
    array = LogSumArray(lns, rows=rows, columns=columns)
    tiles = [random_words(lns, generator, rows, columns) for _ in range(2)]
    vectors = [random_words(lns, generator, VECTORS, rows) for _ in range(2)]
    expected = [sums_down(lns, *pair) for pair in zip(vectors, tiles, strict=True)]
    bits, seen = lns.bits, list[list[int]]()

    async def tick(context: Any) -> None:
        _, _, sums = await context.tick().sample(Value.cast(array.sums))
        seen.append([sums >> bits * j & (1 << bits) - 1 for j in range(columns)])

    async def drive(context: Any) -> None:
        starts = []
        for tile, rows_of_tile in zip(tiles, vectors, strict=True):
            context.set(array.load, 1)
            for row in range(rows):
                context.set(array.row, row)
                context.set(Value.cast(array.weights), packed(tile[row], bits))
                await tick(context)
            context.set(array.load, 0)
            await tick(context)
            await tick(context)
            context.set(array.swap, 1)
            await tick(context)
            context.set(array.swap, 0)
            starts.append(len(seen))
            for vector in rows_of_tile:
                context.set(Value.cast(array.activations), packed(vector, bits))
                await tick(context)
            # until the swap has come to the last row
            for _ in range(array.latency + columns):
                await tick(context)
        for start, sums in zip(starts, expected, strict=True):
            for j in range(columns):
                first = start + array.latency + j
                got = [cycle[j] for cycle in seen[first : first + VECTORS]]
                assert got == sums[:, j].tolist()

    simulator = Simulator(array)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert len(seen) > array.latency


@pytest.mark.parametrize("name", ["lns1+4+4", "lns1+4+5", "lns1+4+6"])
def test_wide_elements_with_linear_sums(name: str) -> None:
    arithmetic = WideArithmetic(Lns.parse(name))
    element_format = LogFormat(arithmetic)
    element = ProcessingElement(number_format=element_format, pixels=1, rows_above=1)
    generator, top = np.random.default_rng(2), arithmetic.lns.largest_code
    weights, activations = (generator.integers(-top, top + 1, 300) for _ in range(2))
    weights[:40] = np.resize([top, -top, 0, 1], 40)
    activations[:40] = np.repeat([top, -top, 0, 1, -1], 8)
    seen: list[int] = []

    async def drive(context: Any) -> None:
        context.set(element.capture, 1)
        context.set(element.swap, 1)
        for weight, activation in zip(weights, np.roll(activations, 2), strict=True):
            context.set(element.weight, coded(int(weight)))
            context.set(Value.cast(element.activations), coded(int(activation)))
            _, _, sums = await context.tick().sample(Value.cast(element.partial_sums_out))
            seen.append(sums)

    def coded(code: int) -> int:
        bits = arithmetic.lns.exponent_bits
        return abs(code) | (code < 0) << bits | (code != 0) << bits + 1

    simulator = Simulator(element)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    width = element_format.partial_sum(2).width
    expected = arithmetic.multiply(activations, weights).astype(np.int64) & (1 << width) - 1
    # an activation meets the weight that was captured before the swap before it
    late = 2 + element_latency(element_format)
    assert seen[late:] == expected[: len(seen) - late].tolist()


def test_wide_formats_end_where_elements_grow() -> None:
    for name in ("lns1+5+4", "lns1+4+7"):
        with pytest.raises(ValueError, match="at most 4 integer and 6 fraction bits, not "):
            WideArithmetic(Lns.parse(name))

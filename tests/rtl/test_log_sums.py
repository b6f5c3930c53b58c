"""Arrays with logarithmic sums; elements of wide formats, or of linear activations."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.sim import Simulator
from slipstick_rtl.array.processing_element import ProcessingElement, element_latency
from slipstick_rtl.experiments.log_sums import LogSumArray
from slipstick_rtl.experiments.mixed_arithmetic import MixedArithmetic
from slipstick_rtl.experiments.mixed_format import MixedFormat
from slipstick_rtl.experiments.wide_arithmetic import WideArithmetic
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.log_format import LogFormat
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic

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
    generator, top = np.random.default_rng(2), arithmetic.lns.largest_code
    weights, activations = (generator.integers(-top, top + 1, 300) for _ in range(2))
    weights[:40] = np.resize([top, -top, 0, 1], 40)
    activations[:40] = np.repeat([top, -top, 0, 1, -1], 8)
    multiply_and_compare(LogFormat(arithmetic), arithmetic, activations, weights)


@pytest.mark.parametrize("name", ["lns1+3+1", "lns1+2+2"])
def test_elements_with_linear_activations(name: str) -> None:
    arithmetic = MixedArithmetic(Lns.parse(name))
    top = arithmetic.lns.largest_code
    activations, weights = np.meshgrid(np.arange(-128, 128), np.arange(-top, top + 1, 3))
    multiply_and_compare(MixedFormat(arithmetic), arithmetic, activations.ravel(), weights.ravel())


def test_linear_activations_meet_powers_of_two_of_a_few_fractions() -> None:
    assert MixedArithmetic(Lns(4, 0)).antilog.tolist() == [1]
    arithmetic = MixedArithmetic(Lns(3, 1))
    assert arithmetic.antilog.tolist() == [8, 11]
    assert arithmetic.multiply(-100, [1, 2, -14, 0]).tolist() == [-1100, -1600, 102400, 0]
    assert arithmetic.factor([1, 2, -14, 0]).tolist() == [1.375, 2, -128, 0]
    cut = MixedArithmetic(Lns(4, 0))
    assert (cut.dropped_places, cut.unit, cut.product_bits) == (3, 8.0, 20)
    assert cut.multiply([1, -127, -128], [2, 15, 15]).tolist() == [0, -(127 << 12), -(128 << 12)]
    for name in ("lns1+5+1", "lns1+3+3"):
        with pytest.raises(ValueError, match="at most 4 integer and 2 fraction bits, not "):
            MixedArithmetic(Lns.parse(name))


def multiply_and_compare(
    element_format: LogFormat | MixedFormat,
    arithmetic: ArrayArithmetic | MixedArithmetic,
    activations: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Each activation times the weight beside it, in an element that takes one a cycle."""
    element = ProcessingElement(number_format=element_format, pixels=1, rows_above=1)
    encoded, stored = Signal(element_format.activation), Signal(element_format.stored_weight)
    # a wide code is longer than a byte
    activation, weight = (Signal(signed(max(8, arithmetic.lns.bits))) for _ in range(2))
    m = Module()
    m.submodules.element = element
    m.d.comb += [
        encoded.eq(element_format.encode(activation)),
        stored.eq(element_format.store(weight)),
        Value.cast(element.activations).eq(encoded),
        element.weight.eq(stored),
        element.capture.eq(1),
        element.swap.eq(1),
    ]
    seen: list[int] = []

    async def drive(context: Any) -> None:
        for each, later in zip(weights, np.roll(activations, 2), strict=True):
            context.set(weight, int(each))
            context.set(activation, int(later))
            _, _, sums = await context.tick().sample(Value.cast(element.partial_sums_out))
            seen.append(sums)

    simulator = Simulator(m)
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

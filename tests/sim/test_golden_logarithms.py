"""The golden models with logarithmic number formats, against the formulas of the arithmetic."""

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_sim.golden.arithmetic import arithmetic_of
from slipstick_sim.golden.convolve import convolve, window_vectors
from slipstick_sim.golden.post import drain, map_taps

FORMATS = ["lns1+3+4", "lns1+4+3", "lns1+3+2", "lns1+2+2"]
LARGEST, SMALLEST = np.iinfo(np.int32).max, np.iinfo(np.int32).min


def configuration_of(name: str) -> Configuration:
    return Configuration(
        rows=8,
        columns=8,
        lanes=4,
        number_format=name,
        activation_bytes=1 << 10,
        weight_bytes=1 << 10,
        accumulator_depth=16,
    )


def definition(configuration: Configuration) -> ArrayArithmetic:
    assert configuration.logarithmic is not None
    return configuration.logarithmic


def codes(generator: np.random.Generator, configuration: Configuration, *shape: int) -> np.ndarray:
    largest = definition(configuration).lns.largest_code
    return generator.integers(-largest, largest + 1, shape).astype(np.int8)


@pytest.mark.parametrize("name", FORMATS)
def test_a_matrix_product_is_the_sum_of_products(name: str) -> None:
    c = configuration_of(name)
    generator = np.random.default_rng(1)
    matrix, weights = codes(generator, c, 50, 30), codes(generator, c, 30, 16)
    matrix[::3] = 0
    products = definition(c).multiply(matrix[:, :, None], weights[None])
    before = generator.integers(SMALLEST, LARGEST, (50, 16), dtype=np.int32, endpoint=True)
    results = before.copy()
    arithmetic = arithmetic_of(c)
    arithmetic.multiply(matrix, weights, results, True)
    np.testing.assert_array_equal(results - before, products.sum(axis=1))
    arithmetic.multiply(matrix, weights, results, False)
    np.testing.assert_array_equal(results, products.sum(axis=1))
    sums = arithmetic.tile_sums(matrix[:, None], weights)
    np.testing.assert_array_equal(sums[:, 0], results)


def test_sums_wrap_at_32_bits() -> None:
    c = configuration_of("lns1+3+4")
    largest = np.int8(definition(c).lns.largest_code)
    matrix, weights = np.full((1, 4096), largest), np.full((4096, 4), largest)
    results = np.zeros((1, 4), np.int32)
    arithmetic_of(c).multiply(matrix, weights, results, False)
    exact = 4096 * int(definition(c).multiply(largest, largest))
    assert exact > LARGEST
    assert (results == (exact + (1 << 31)) % (1 << 32) - (1 << 31)).all()


@pytest.mark.parametrize("name", FORMATS)
def test_a_convolution_multiplies_what_its_windows_hold(name: str) -> None:
    c = configuration_of(name)
    generator = np.random.default_rng(2)
    activations, weights = codes(generator, c, 1, 1 << 10), codes(generator, c, 18, 1, 8)
    fields = dict.fromkeys(MATRIX_FIELDS, 0) | {
        "opcode": Opcode.CONVOLVE,
        "align_tap": 1,
        "reduction_tiles": 2,
        "channels": 8,
        "kernel_x": 2,
        "tap_step_x": 8,
        "dilation_x": 1,
        "dilation_y": 1,
        "origin_x": -1,
        "origin": -8,
        "height": 3,
        "width": 4,
        "stride_y": 1,
        "stride_x": 1,
        "column_step": 8,
        "row_step": 32,
        "rows": 3,
        "groups": 5,
    }
    accumulators = np.zeros((1, 16, 1, 8), np.int32)
    convolve(fields, weights, activations, accumulators, c)
    vectors, _ = window_vectors(fields, activations[0], c)
    expected = sum(
        definition(c).multiply(tile.reshape(15, 8, 1), weights[8 * k : 8 * k + 8, 0]).sum(axis=1)
        for k, tile in enumerate(vectors)
    )
    np.testing.assert_array_equal(accumulators[0, :15, 0], expected)


@pytest.mark.parametrize("coded", [0, 1])
def test_drained_values_are_requantised_unless_they_are_codes(coded: int) -> None:
    c = configuration_of("lns1+3+2")
    generator = np.random.default_rng(3)
    values = generator.integers(SMALLEST, LARGEST, (1, 16, 1, 8), dtype=np.int32)
    values >>= generator.integers(0, 31, values.shape, dtype=np.int32)
    bias = generator.integers(-40, 40, 8).astype(np.int32)
    bias[3] = LARGEST
    offset = generator.integers(-800, 400, 8)
    # what lies above the offset in the multiplier, and the shift, does not matter
    multiplier = (offset & 0xFFFF) | generator.integers(0, 1 << 15, 8) << 16
    fields = dict.fromkeys(POST_FIELDS, 0) | {
        "opcode": Opcode.DRAIN,
        "rows": 4,
        "columns": 4,
        "slices": 2,
        "destination_row_step": 32,
        "destination_column_step": 8,
        "rounding": 3,
        "zero_point": 9,
        "minimum": -20,
        "maximum": 25,
        "coded": coded,
    }
    activations = np.zeros((1, 1 << 10), np.int8)
    drain(fields, values, (bias, multiplier, np.full(8, 17)), activations, c)
    given = values[0, :, 0]
    if coded:
        expected = ((given.astype(np.int64) + bias + (1 << 31)) % (1 << 32)) - (1 << 31)
    else:
        expected = definition(c).requantize(given, bias, offset)
    written = activations[0, : 16 * 8].reshape(16, 8)
    np.testing.assert_array_equal(written, np.clip(expected, -20, 25))


def test_codes_are_pooled_as_they_are_and_summed_through_the_table() -> None:
    c = configuration_of("lns1+3+4")
    arithmetic = definition(c)
    generator = np.random.default_rng(4)
    fields = dict.fromkeys(POST_FIELDS, 0) | {
        "opcode": Opcode.MAP,
        "rows": 1,
        "columns": 8,
        "slices": 1,
        "destination": 512,
        "destination_column_step": 4,
        "source_column_step": 4,
        "taps_y": 1,
        "taps_x": 2,
        "tap_step_x": 32,
        "minimum": -127,
        "maximum": 127,
    }
    activations = codes(generator, c, 1, 1 << 10)
    first, second = (activations[0, k : k + 32].astype(np.int64) for k in (0, 32))
    nothing = np.zeros(4, np.int32), np.zeros(4, np.int64), np.zeros(4, np.int64)
    # the largest is the largest code
    pooling = fields | {"take_maximum": 1, "coded": 1}
    map_taps(pooling, np.zeros(512, np.int32), nothing, activations, c)
    np.testing.assert_array_equal(activations[0, 512:544], np.maximum(first, second))
    # the table's entries are what codes stand for, each operand with a scale of its own
    every = np.arange(-128, 128)
    magnitudes = np.where(every == 0, 0, 2.0 ** (np.abs(every) / 16) * 1000)
    linear = np.rint(np.sign(every) * magnitudes).astype(np.int64)
    table = np.concatenate([linear, 3 * linear]).astype(np.int32)
    offset = arithmetic.offset(1 / 4000)
    parameters = nothing[0], np.full(4, offset & 0xFFFF), nothing[2]
    map_taps(fields | {"use_table": 3}, table, parameters, activations, c)
    sums = (linear[first + 128] + 3 * linear[second + 128]).astype(np.int32)
    np.testing.assert_array_equal(activations[0, 512:544], arithmetic.requantize(sums, 0, offset))

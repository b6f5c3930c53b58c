"""Depthwise CONVOLVEs: the golden model against the loop nest of the instruction set."""

from collections.abc import Mapping

import numpy as np
import pytest
from slipstick_rtl.config import DEPTHWISE_TAPS, Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, pack, unpack
from slipstick_sim.benches.stimulus.random_convolve import depthwise_words, prepare_weights
from slipstick_sim.benches.stimulus.random_depthwise import random_depthwise
from slipstick_sim.golden.convolve import convolve, window_vectors

CONFIGURATION = Configuration(
    rows=16,
    columns=8,
    lanes=4,
    weight_rows=4,
    packed_rows=5,
    activation_bytes=1 << 12,
    weight_bytes=1 << 12,
    accumulator_depth=64,
)
COLUMNS = CONFIGURATION.columns
KEPT = {"kept_rows": 1, "skip": 2, "stride_y": 2, "row_step": 48, "padding_value": -128}


def naive_vectors(instruction: Mapping[str, int], activations: np.ndarray) -> np.ndarray:
    """Input rows as the docstring of CONVOLVE reads them, (blocks, 4, stream columns, C)."""
    i = instruction
    block = 2 if i["skip"] == 1 or i["kept_rows"] else 1
    shape = -(-i["rows"] // block), 4, (i["groups"] - 1) * i["skip"] + 3, COLUMNS
    v = np.full(shape, i["padding_value"], np.int64)
    for b, k, m, j in np.ndindex(*shape):
        y = i["origin_y"] + b * block * i["stride_y"] + k * i["dilation_y"]
        x = i["origin_x"] + m * i["stride_x"]
        address = i["origin"] + b * block * i["row_step"] + k * i["tap_step_y"]
        half, channel = divmod(j, i["channels"])
        x += half * i["dilation_x"]
        address += m * i["column_step"] + half * i["tap_step_x"] + channel
        if 0 <= y < i["height"] and 0 <= x < i["width"]:
            v[b, k, m, j] = activations[address % CONFIGURATION.activation_bytes]
    return v


def random_case(seed: int) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """An instruction, weights and two images of activations."""
    random = np.random.default_rng(seed)
    fields = None
    while fields is None:
        fields = random_depthwise(random, CONFIGURATION)
    fields["weight_address"] = int(random.choice(list(depthwise_words(CONFIGURATION))))
    shape = CONFIGURATION.weight_words, CONFIGURATION.weight_rows, COLUMNS
    weights = random.integers(-128, 128, shape, np.int8)
    prepare_weights(weights, CONFIGURATION)
    images = random.integers(-128, 128, (2, CONFIGURATION.activation_bytes), np.int8)
    return unpack(MATRIX_FIELDS, pack(MATRIX_FIELDS, fields)), weights, images


@pytest.mark.parametrize("seed", range(40))
def test_depthwise_is_the_loop_nest(seed: int) -> None:
    instruction, weights, images = random_case(seed)
    i = instruction
    accumulators = np.full((2, 64, 1, COLUMNS), 77, np.int32)
    convolve(instruction, weights, images, accumulators, CONFIGURATION)
    block = 2 if i["skip"] == 1 or i["kept_rows"] else 1
    length = CONFIGURATION.tile_words
    for activations, result in zip(images, accumulators, strict=True):
        read = v = naive_vectors(instruction, activations)
        if i["kept_rows"]:
            kept = np.concatenate([np.full_like(v[:1, :1], -128), v[:-1, 3:]])
            v = np.concatenate([kept, v], axis=1)
        expected = np.full((64, 1, COLUMNS), 77, np.int64)
        for row, n in np.ndindex(i["rows"], i["groups"]):
            b, h = divmod(row, block)
            total = np.zeros(COLUMNS, np.int64)
            for ky, kx in np.ndindex(3, 3):
                chain, step = divmod(CONFIGURATION.packed_rows + 3 * ky + kx, length)
                weight = weights[i["weight_address"] + step, chain].astype(np.int64)
                k = (1 + i["kept_rows"]) * h + ky
                total += v[b, k, n * i["skip"] + kx] * weight
            expected[row * i["groups"] + n, 0] = total
        np.testing.assert_array_equal(result, expected)
        (vectors,), defined = window_vectors(instruction, activations, CONFIGURATION)
        columns = read.swapaxes(1, 2).reshape(-1, 4, COLUMNS)
        if i["joined"]:
            # a column for two
            others = np.arange(len(columns)) % read.shape[2] > 0
            columns = columns[others | (np.arange(len(columns)) == 0)]
        np.testing.assert_array_equal(vectors.reshape(-1, 4, COLUMNS), columns)
        assert defined.all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"skip": 0}, "skip of a depthwise CONVOLVE must be at least 1, not 0"),
        ({"rows": 0}, "rows of a depthwise CONVOLVE must be at least 1, not 0"),
        ({"reduction_tiles": 2}, "reduction_tiles of a depthwise CONVOLVE must be 1, not 2"),
        ({"channels": 4}, "channels of a depthwise CONVOLVE must be 8, not 4"),
        ({"kernel_x": 2, "tap_step_x": 4}, "channels of a depthwise CONVOLVE must be 4, not 8"),
        ({"kernel_x": 2, "tap_step_x": 8}, "tap_step_x must be 4 modulo 16 with depthwise, not 8"),
        ({"kernel_x": 3}, "kernel_x of a depthwise CONVOLVE must be 1, not 3"),
        ({"accumulate": 1, "pairs": 1}, "depthwise must be 0 with accumulate, pairs, not 1"),
        ({"tap_step_y": 32}, "tap_step_y must be 8 modulo 16 with depthwise, not 32"),
        ({"row_step": 48}, r"row_step must be tap_step_y \(24\) with depthwise, .*, not 48"),
        ({"stride_y": 2}, r"stride_y must be dilation_y \(1\) with depthwise, .*, not 2"),
        ({"weight_address": 4}, r"rows other than 5\.\.13 must be zero .* not those of row 14"),
        ({"kept_rows": 1}, "skip must be 2 with kept_rows, not 1"),
        (KEPT | {"stride_y": 1}, "stride_y must be 2 with kept_rows, not 1"),
        (KEPT | {"row_step": 24}, "row_step must be 48 with kept_rows, not 24"),
        (KEPT | {"padding_value": 0}, "padding_value must be -128 with kept_rows, not 0"),
        (KEPT | {"origin_y": 1}, "origin_y less dilation_y must lie in padding .* not at row 0"),
        ({"joined": 1, "origin_x": -1, "groups": 3, "skip": 2}, "skip must be 1 with joined"),
        ({"joined": 1}, "stream column 0 must lie in padding with joined, not at 0"),
        ({"joined": 1, "origin_x": -2}, "stream column 3 must lie in padding .* not at 1"),
        (KEPT | {"groups": 8}, "stream columns must be at most 16 with kept_rows, not 17"),
        ({"rows": 33}, r"accumulators of CONVOLVE must lie within 0\.\.64, not 0\.\.66"),
    ],
)
def test_broken_rules_are_named(changes: dict[str, int], message: str) -> None:
    instruction = dict.fromkeys(MATRIX_FIELDS, 0) | {
        "depthwise": 1,
        "skip": 1,
        "reduction_tiles": 1,
        "channels": COLUMNS,
        "kernel_x": 1,
        "tap_step_y": 24,
        "row_step": 24,
        "dilation_y": 1,
        "stride_y": 1,
        "stride_x": 1,
        "column_step": 8,
        "height": 4,
        "width": 3,
        "rows": 2,
        "groups": 2,
    }
    weights = np.zeros((CONFIGURATION.weight_words, 4, COLUMNS), np.int8)
    weights[6, 3] = 1
    activations = np.zeros((1, CONFIGURATION.activation_bytes), np.int8)
    accumulators = np.zeros((1, 64, 1, COLUMNS), np.int32)
    convolve(instruction, weights, activations, accumulators, CONFIGURATION)
    with pytest.raises(ValueError, match=message):
        convolve(instruction | changes, weights, activations, accumulators, CONFIGURATION)


@pytest.mark.parametrize(
    "changes", [{"columns": 16}, {"pixels": 2}, {"packed_rows": 16 - DEPTHWISE_TAPS + 1}]
)
def test_other_configurations_refuse_it(changes: dict[str, int]) -> None:
    instruction, weights, images = random_case(1)
    fields = CONFIGURATION.to_dict() | changes
    configuration = Configuration.from_dict(fields)
    assert CONFIGURATION.takes_depthwise
    assert not configuration.takes_depthwise
    accumulators = np.zeros((2, 64, configuration.pixels, configuration.columns), np.int32)
    with pytest.raises(ValueError, match=r"depthwise must be 0 with \dx16x\d+ of this kind"):
        convolve(instruction, weights, images, accumulators, configuration)

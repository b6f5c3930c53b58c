"""Pairs and ninth bits: the golden model's sums are the plain ones, and its rules are told."""

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, accumulator_place
from slipstick_sim.golden.array import tile_words
from slipstick_sim.golden.convolve import convolve

CONFIGURATION = Configuration(
    rows=8,
    columns=8,
    lanes=4,
    weight_rows=2,
    ninth_bits=1,
    packed_rows=3,
    multiplier="lut",
    activation_bytes=1 << 10,
    weight_bytes=1 << 12,
    accumulator_depth=64,
)
FIELDS = dict.fromkeys(MATRIX_FIELDS, 0) | {
    "opcode": 1,
    "reduction_tiles": 2,
    "channels": 4,
    "kernel_x": 3,
    "tap_step_x": 4,
    "dilation_x": 1,
    "height": 1,
    "width": 8,
    "stride_x": 1,
    "column_step": 4,
    "rows": 1,
    "groups": 6,
    "pairs": 1,
}
"""A kernel of three columns of four channels: a half tile and a whole one."""


def _case() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weight memory, activations, accumulators, and the sums that are wanted."""
    draw = np.random.default_rng(1)
    kernel = draw.integers(-128, 128, (12, 8), np.int8)
    image = draw.integers(-128, 128, (8, 4), np.int8)
    tiles = np.concatenate([kernel[:4], kernel[:4], kernel[4:]]).reshape(2, 8, 8)
    words = np.concatenate([tile_words(tile, 2) for tile in tiles])
    weights = np.zeros((CONFIGURATION.weight_words, 2, 8), np.int8)
    weights[: len(words)] = words
    activations = np.zeros((1, 1 << 10), np.int8)
    activations[0, :32] = image.reshape(-1)
    windows = np.stack([image[x : x + 3].reshape(-1) for x in range(6)]).astype(np.int32)
    return weights, activations, np.zeros((1, 64, 1, 8), np.int32), windows @ kernel


def test_pairs_sum_as_whole_tiles_do() -> None:
    weights, activations, accumulators, wanted = _case()
    convolve(FIELDS, weights, activations, accumulators, CONFIGURATION)
    np.testing.assert_array_equal(accumulators[0, :6, 0], wanted)


def test_weights_from_ninth_bits_are_the_same() -> None:
    weights, activations, accumulators, wanted = _case()
    ninth = np.zeros((CONFIGURATION.weight_words, 2, 8), np.uint8)
    planes = np.unpackbits(weights[:8].view(np.uint8)[..., None], axis=-1, bitorder="little")
    ninth[16 : 16 + 64] = np.moveaxis(planes, -1, 1).reshape(64, 2, 8)
    fields = FIELDS | {"from_ninth": 1, "weight_address": 16}
    convolve(fields, weights * np.int8(0), activations, accumulators, CONFIGURATION, ninth)
    np.testing.assert_array_equal(accumulators[0, :6, 0], wanted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": 5}, "groups must be even with pairs, not 5"),
        ({"column_step": 8}, "column_step must be 4 modulo 8 with pairs, not 8"),
        ({"accumulate": 1}, "pairs must be 0 with accumulate, not 1"),
        ({"align_row": 1}, "pairs must be 0 with align_row, not 1"),
        ({"weight_address": 1}, "weights of rows . and . of the first tile must be the same"),
        ({"from_ninth": 1}, "from_ninth must be 0 without ninth_bits"),
        ({"parts": 2, "groups": 8, "rows": 3}, r"must lie within 0\.\.16, not 0\.\.24"),
    ],
)
def test_rules(changes: dict[str, int], message: str) -> None:
    weights, activations, accumulators, _ = _case()
    with pytest.raises(ValueError, match=message):
        convolve(FIELDS | changes, weights, activations, accumulators, CONFIGURATION)


def test_banks_of_several_parts_fill_the_accumulators_without_overlap() -> None:
    for parts in range(3):
        places = [accumulator_place(bank, parts, 64) for bank in range(2 << parts)]
        words = [
            (half, word) for half, first, size in places for word in range(first, first + size)
        ]
        assert sorted(words) == [(half, word) for half in range(2) for word in range(64)]

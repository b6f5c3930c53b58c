"""Weights and parameters as the golden core finds them again."""

import dataclasses

import numpy as np
import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.compiler.ir.operations import Convolution
from slipstick.compiler.ir.requantization import Requantization, half_up
from slipstick.compiler.lower.select import select
from slipstick.compiler.mapping.reduction import channel_tiles, weight_words
from slipstick.compiler.memory.constants import Images
from slipstick.errors import CapacityError
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space
from slipstick_sim.golden.memories import Memories
from slipstick_sim.golden.post import load_table, table_entries

PLAIN = Configuration(rows=16, columns=8, lanes=4, weight_rows=4, weight_bytes=1 << 12)
NINTH = dataclasses.replace(PLAIN, ninth_bits=1)
COMPACT = Configuration(engine="compact", rows=2, columns=8, lanes=1, parameter_words=64)
WAYS = (("matrix_first", False), ("post_first", False))
KINDS = ["plain", "ninth", "compact"]


def _loaded(images: Images, configuration: Configuration) -> Memories:
    memories = Memories(configuration)
    for image in images.all():
        memories.write(Space(image.space), image.address, image.data)
    return memories


def _values(count: int) -> Requantization:
    random = np.random.default_rng(count)
    return Requantization(
        random.integers(-(1 << 31), 1 << 31, count),
        random.integers(0, 1 << 31, count),
        random.integers(0, 50, count),
        np.zeros(count, np.int64),
    )


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({}, 256),
        ({"number_format": "lns1+3+4"}, 256),
        ({"number_format": "lns1+2+2"}, 32),
        ({"number_format": "lns1+2+2", "rows": 32, "columns": 64, "weight_rows": 8}, 64),
    ],
)
def test_a_table_has_an_entry_per_code(fields, codes, halves):
    configuration = dataclasses.replace(PLAIN, **fields)
    table = np.arange(256 * halves, dtype=np.int32).reshape(halves, 256)
    images = Images(configuration)
    address, words = images.add_table(table.reshape(-1), "layer")
    found = np.full(table_entries(configuration), -1, np.int32)
    assert len(found) == 2 * codes
    instruction = {"table_address": address, "table_words": words}
    load_table(instruction, _loaded(images, configuration).weights, found, configuration)
    middle = slice(128 - codes // 2, 128 + codes // 2)
    np.testing.assert_array_equal(found[: codes * halves], table[:, middle].reshape(-1))


@pytest.mark.parametrize(
    "configuration", [PLAIN, NINTH, COMPACT], ids=["plain", "ninth", "compact"]
)
def test_parameters_come_back(configuration):
    images, values = Images(configuration), _values(21)
    words = np.arange(7 * configuration.weight_word_bytes, dtype=np.int8)
    words = words.reshape(7, configuration.weight_rows, 8)
    spans = [(0, 8), (8, 8), (16, 5)]
    weights = images.add_weights(words, "layer")
    places = [images.add_parameters(values, *span, "layer") for span in spans]
    single = images.add_single(half_up(12345, 40, 0, (-128, 127)), "layer")
    again = images.add_parameters(values, 8, 8, "layer")
    assert again == places[1] and images.add_weights(words, "layer") == weights
    memories = _loaded(images, configuration)
    np.testing.assert_array_equal(memories.weights[weights : weights + 7], words)
    for (first, count), place in zip(spans, places, strict=True):
        found = memories.channel_parameters(place, count)
        for name, array in zip(("bias", "multiplier", "shift"), found, strict=True):
            wanted = getattr(values, name)[first : first + count]
            np.testing.assert_array_equal(array[:count], wanted, name)
    found = np.stack(memories.channel_parameters(single, 1), axis=1)
    assert len(found) == (1 if configuration.traits.has_parameter_memory else 8)
    assert {tuple(row) for row in found.tolist()} == {(0, 12345, found[0, 2])}


def test_ninth_bits_lie_over_the_weights():
    """Either may be the longer one."""
    images, values = Images(NINTH), _values(8)
    place = images.add_parameters(values, 0, 8, "layer")
    weights = images.add_weights(np.ones((2, 4, 8), np.int8), "layer")
    assert (place, weights, images.words) == (0, 0, (2, NINTH.parameter_block_words))
    (image,) = images.all()
    assert len(image.data) == NINTH.parameter_block_words * NINTH.weight_unit_bytes
    plain = Images(PLAIN)
    assert plain.add_weights(np.ones((2, 4, 8), np.int8), "layer") == 0
    assert plain.add_parameters(values, 0, 8, "layer") == 2
    assert plain.words == (2 + PLAIN.parameter_block_words,) * 2


@pytest.mark.parametrize(
    ("configuration", "name", "least"),
    [
        (PLAIN, "the weight memory", 42),
        (NINTH, "the ninth bits of the weight memory", 7),
        (COMPACT, "the parameter memory", 8),
    ],
    ids=KINDS,
)
def test_a_message_names_the_memory_that_is_full(configuration, name, least):
    images = Images(configuration, shares=False)
    for number in range(least + 1):
        images.add_parameters(_values(8), 0, 8, f"layer {number}")
    with pytest.raises(CapacityError, match=rf"layer 'layer {least}': {name} must hold"):
        images.all()


@pytest.mark.parametrize(
    ("sizes", "pitches", "tiles"),
    [
        # a pixel, and a row less two pixels, are half a tile further on: two taps lie in each
        ((16, 8, 2), (216, 24), 5),
        ((16, 8, 4), (216, 24), 5),
        # pixels alone: two taps and one, a row
        ((16, 8, 4), (224, 24), 6),
        # whole tiles further on, whatever the hardware
        ((16, 8, 4), (144, 16), 9),
        # a quarter
        ((32, 8, 4), (216, 40), 3),
        # fewer rows than columns
        ((8, 16, 1), (216, 24), 9),
    ],
)
def test_taps_of_a_depthwise_layer_share_tiles_where_they_can(sizes, pitches, tiles):
    rows, columns, chains = sizes
    # too few rows for kernels that slide
    configuration = Configuration(
        rows=rows, columns=columns, lanes=4, weight_rows=chains, packed_rows=rows - 8
    )
    builder = NetworkBuilder(4, 5, 5, 16)
    builder.conv2d(16, (3, 3), groups=16, dilation=(1, 1))
    operations, _ = select(builder.graph(), configuration)
    (convolution,) = operations
    assert isinstance(convolution, Convolution)
    tile = channel_tiles(convolution, pitches, configuration)[0]
    assert tile.reduction.tiles == tiles and tile.reduction.is_legal(configuration)
    words = weight_words(convolution, tile, pitches[1], configuration)
    assert words.shape == (tiles, chains, columns)
    weights = convolution.weights[: tile.count]
    assert np.abs(words.astype(int)).sum() == np.abs(weights.astype(int)).sum()


@pytest.mark.parametrize(
    ("channels", "width", "row_pitch", "tiles", "pairs"),
    [
        # nine taps of half a tile: one for two vectors at once, four whole tiles
        (16, 8, 144, 5, True),
        # neighbours must be two
        (16, 7, 112, 5, False),
        # whole tiles, and pixels whole tiles apart
        (32, 8, 256, 9, False),
        (8, 8, 88, 3, False),
    ],
)
def test_a_half_tile_takes_two_vectors_at_once(channels, width, row_pitch, tiles, pairs):
    configuration = Configuration(rows=32, columns=16, lanes=8, weight_rows=4)
    builder = NetworkBuilder(5, 8, width, channels)
    builder.same_conv2d(3, 16)
    program = check_ways(builder, configuration, (), WAYS, inspect=False)
    assert program.layers[0].where == "device"
    operations, _ = select(builder.graph(), configuration)
    (convolution,) = operations
    assert isinstance(convolution, Convolution)
    pitches = row_pitch, channels
    tile = channel_tiles(convolution, pitches, configuration)[0]
    assert (tile.reduction.tiles, tile.reduction.pairs) == (tiles, pairs)
    words = weight_words(convolution, tile, channels, configuration)
    assert words.shape == (8 * tiles, 4, 16)
    # rows of the first tile: word q has row q of each chain of 8
    rows = words[:8].swapaxes(0, 1).reshape(32, 16)
    assert np.array_equal(rows[:16], rows[16:]) == pairs

"""Random CONVOLVE instructions that obey the instruction set's rules."""

import numpy as np
from slipstick_rtl.config import DEPTHWISE_TAPS, Configuration

from ...golden.array import tile_rows, tile_words
from ...golden.convolve import weight_range
from .random_depthwise import random_depthwise
from .random_post import parameter_blocks
from .random_windows import random_windows

PAIR_TILES, DEPTHWISE_TILES = 4, 4
"""Tiles of the weight memory that ``pairs`` may begin with, and that ``depthwise`` may have."""


def random_convolve(
    generator: np.random.Generator, configuration: Configuration, weights: np.ndarray
) -> dict[str, int]:
    """Field values of a CONVOLVE within small memories.

    Idle lanes must meet zero weights: where an alignment leaves such lanes, the weights that they
    meet are zeroed in ``weights`` only if that memory is the caller's to change; so this draws
    alignments whose tiles are whole instead, and kernels whose rows join by the input's row pitch.
    ``prepare_weights`` must have been called for the weights.
    """
    kinds = (
        [random_windows, random_depthwise] if configuration.takes_depthwise else [random_windows]
    )
    first = _first_weight(configuration)
    while True:
        fields = kinds[generator.integers(len(kinds))](generator, configuration)
        if fields is None:
            continue
        words = len(weight_range(fields | {"weight_address": 0}, configuration))
        if first + words > len(weights):
            continue
        last = len(weights) - words
        if fields["pairs"] or fields["depthwise"]:
            choice = depthwise_words if fields["depthwise"] else pair_words
            starts = [start for start in choice(configuration) if start <= last]
            fields["weight_address"] = int(generator.choice(starts))
        else:
            fields["weight_address"] = int(generator.integers(first, last + 1))
        return fields


def _first_weight(configuration: Configuration) -> int:
    """The first word that may be weights: parameters are no operands of every number format."""
    if configuration.format.takes_parameter_codes or configuration.ninth_bits:
        return 0
    return parameter_blocks(configuration) * configuration.parameter_block_words


def pair_words(configuration: Configuration) -> range:
    """First words of the tiles that ``pairs`` may begin with, behind the parameters' blocks."""
    length = configuration.tile_words
    first = (
        -(-parameter_blocks(configuration) * configuration.parameter_block_words // length) * length
    )
    return range(first, first + PAIR_TILES * length, length)


def depthwise_words(configuration: Configuration) -> range:
    """First words of the tiles that ``depthwise`` may have, behind those of ``pairs``."""
    length = configuration.tile_words
    first = pair_words(configuration).stop
    return range(first, first + DEPTHWISE_TILES * length, length)


def prepare_weights(weights: np.ndarray, configuration: Configuration) -> None:
    """Makes tiles of the memory fit for ``pairs`` and for ``depthwise``, in place.

    A pair's rows have halves that are the same; of a depthwise tile only the taps have weights.
    """
    c, length = configuration, configuration.tile_words
    for first in pair_words(c) if c.takes_pairs else ():
        words = weights[first : first + length]
        rows = tile_rows(words)
        rows[c.rows // 2 :] = rows[: c.rows // 2]
        words[...] = tile_words(rows, c.weight_rows)
    for first in depthwise_words(c) if c.takes_depthwise else ():
        words = weights[first : first + length]
        rows = tile_rows(words)
        rows[: c.packed_rows] = 0
        rows[c.packed_rows + DEPTHWISE_TAPS :] = 0
        words[...] = tile_words(rows, c.weight_rows)

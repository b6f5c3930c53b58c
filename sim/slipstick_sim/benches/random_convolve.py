"""Random CONVOLVE instructions that obey the instruction set's rules."""

import numpy as np
from slipstick_rtl.config import DEPTHWISE_TAPS, Configuration
from slipstick_rtl.isa import KEPT_COLUMNS

from ..golden.arithmetic import operand_range
from ..golden.array import tile_rows, tile_words
from ..golden.convolve import weight_range
from .random_post import PARAMETER_BLOCKS

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
    draws = [_draw, random_depthwise] if configuration.takes_depthwise else [_draw]
    first = _first_weight(configuration)
    while True:
        fields = draws[generator.integers(len(draws))](generator, configuration)
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
    if configuration.logarithmic is None or configuration.ninth_bits:
        return 0
    return PARAMETER_BLOCKS * configuration.parameter_block_words


def pair_words(configuration: Configuration) -> range:
    """First words of the tiles that ``pairs`` may begin with, behind the parameters' blocks."""
    length = configuration.tile_words
    first = -(-PARAMETER_BLOCKS * configuration.parameter_block_words // length) * length
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


def _draw(generator: np.random.Generator, configuration: Configuration) -> dict[str, int] | None:
    rows, pixels = configuration.rows, configuration.pixels

    def draw(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    kernel_y, kernel_x, stride_y, stride_x = draw(1, 4), draw(1, 4), draw(1, 3), draw(1, 3)
    diagonal = draw(0, 4) == 0
    dilation_y = draw(1, 2)
    channels = min(rows, configuration.columns) if diagonal else draw(1, 2 * rows)
    if configuration.aligned:
        channels = -(-channels // rows) * rows
    elif configuration.takes_pairs and not diagonal and draw(0, 2) == 0:
        # what suits pairs
        channels, kernel_y, kernel_x, stride_x = rows // 2, 2 * draw(0, 1) + 1, 3, 1
    # a diagonal of more rows than columns has several taps a tile
    whole_taps = channels % rows == 0
    align_tap = int(whole_taps and (diagonal or draw(0, 1)))
    dilation_x = draw(1, 2) if whole_taps else 1
    pixel_pitch = channels
    height, width = draw(1, 9), draw(1, 9)
    run = kernel_x * pixel_pitch
    row_pitch = width * pixel_pitch
    if not align_tap:
        while (dilation_y * row_pitch - run) % rows and kernel_y > 1:
            row_pitch += rows if configuration.aligned else 1
            if row_pitch > 40 * rows:
                return None
    total = kernel_y * kernel_x * channels
    pairs = configuration.takes_pairs and not diagonal and total % rows == rows // 2
    if total % rows and not pairs:
        return None
    tiles = -(-total // rows)
    top, left = draw(0, kernel_y), draw(0, kernel_x)
    out_rows, groups = (1, 1) if draw(0, 2) == 0 else (draw(1, 6), draw(1, 6))
    if pairs:
        align_tap, groups = 0, 2 * draw(1, 3)
        if stride_x * pixel_pitch % rows != rows // 2:
            return None
    base = draw(0, 1024) // rows * rows
    if base + height * row_pitch > configuration.activation_bytes:
        return None
    fields = {
        "opcode": 1,
        "diagonal": int(diagonal),
        "align_tap": align_tap,
        "align_row": int(not pairs and run % rows == 0 and draw(0, 1)),
        "reduction_tiles": tiles,
        "channels": channels,
        "kernel_x": kernel_x,
        "tap_step_x": dilation_x * pixel_pitch,
        "tap_step_y": dilation_y * row_pitch,
        "dilation_x": dilation_x,
        "dilation_y": dilation_y,
        "origin": base - top * row_pitch - left * pixel_pitch,
        "origin_y": -top,
        "origin_x": -left,
        "height": height,
        "width": width,
        "stride_y": stride_y,
        "stride_x": stride_x,
        "column_step": stride_x * pixel_pitch,
        "row_step": stride_y * row_pitch,
        "rows": out_rows,
        "groups": groups,
        "padding_value": draw(*operand_range(configuration)),
        "accumulate": 0 if pairs else draw(0, 1),
        "pairs": int(pairs),
        "from_ninth": int(
            bool(configuration.ninth_bits)
            and configuration.logarithmic is None
            and not pairs
            and not diagonal
            and draw(0, 3) == 0
        ),
        "depthwise": 0,
        "whole_words": int(channels % configuration.weight_rows == 0 and draw(0, 1)),
    }
    return fields if out_rows * groups * pixels <= 64 * pixels else None


def random_depthwise(
    generator: np.random.Generator, configuration: Configuration
) -> dict[str, int] | None:
    """Field values of a depthwise CONVOLVE, the address of its weights left open.

    Its channels may be a tile of several; a kernel row is an odd number of input rows further.
    """
    columns = configuration.columns

    def draw(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    skip, dilation_y, stride_x = draw(1, 3), 2 * draw(0, 1) + 1, draw(1, 3)
    kept_rows = int(skip == 2 and draw(0, 3) > 0)
    height, width, channel_tiles = draw(1, 9), draw(1, 9), draw(1, 4)
    pixel_pitch = channel_tiles * columns
    row_pitch = width * pixel_pitch
    row_pitch += (columns - row_pitch) % configuration.rows
    out_rows, groups = draw(1, 7), draw(1, 8)
    stride_y = dilation_y if skip == 1 and out_rows > 1 else draw(1, 3)
    top, left = draw(0, 3), draw(0, 3)
    base = draw(0, 1024)
    end = base + height * row_pitch
    if end > configuration.activation_bytes or out_rows * groups > 64:
        return None
    base += draw(0, channel_tiles - 1) * columns
    # two halves of the image at once
    halves = columns // 2 % configuration.weight_rows == 0 and not draw(0, 2)
    apart = columns // 2 + draw(0, 3) * configuration.rows if halves else 0
    if end + apart > configuration.activation_bytes:
        return None
    joined = int(skip == 1 and not halves and draw(0, 2) > 0)
    if joined:
        left = max(left, 1)
        groups = max(groups, -(-(width + left) // stride_x) - 1)
        if out_rows * groups > 64:
            return None
    tap_step_y, row_step = dilation_y * row_pitch, stride_y * row_pitch
    padding = configuration.kept_padding
    if kept_rows:
        if (groups - 1) * skip + 3 > KEPT_COLUMNS:
            return None
        # the row above the first one that is read is padding
        stride_y, top = 2 * dilation_y, draw(1 - dilation_y, 2)
        if draw(0, 1):
            base, tap_step_y = base + (height - 1) * row_pitch, -tap_step_y
            row_pitch = -row_pitch
        row_step = 2 * tap_step_y % (1 << 24)
    return {
        "opcode": 1,
        "diagonal": 0,
        "align_tap": 0,
        "align_row": 0,
        "reduction_tiles": 1,
        "channels": columns // 2 if halves else columns,
        "kernel_x": 1 + halves,
        "tap_step_x": apart,
        "tap_step_y": tap_step_y,
        "dilation_x": stride_x * draw(0, 4) if halves else 0,
        "dilation_y": dilation_y,
        "origin": base - top * row_pitch - left * pixel_pitch,
        "origin_y": -top,
        "origin_x": -left,
        "height": height,
        "width": width,
        "stride_y": stride_y,
        "stride_x": stride_x,
        "column_step": stride_x * pixel_pitch,
        "row_step": row_step,
        "rows": out_rows,
        "groups": groups,
        "padding_value": padding if kept_rows else draw(*operand_range(configuration)),
        "accumulate": 0,
        "pairs": 0,
        "depthwise": 1,
        "skip": skip,
        "kept_rows": kept_rows,
        "joined": joined,
        "whole_words": draw(0, 1),
    }

"""The flattened reduction of a convolution: how lanes count, and the weights in their order."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS

from ...errors import CapacityError
from ..ir.operations import Convolution
from ..ir.requantization import rounding_runs
from .depthwise_window import Sliding, slidings

LARGEST_COUNT = (1 << MATRIX_FIELDS["reduction_tiles"].width) - 1
"""Largest number of tiles, and of channels of a tap, that an instruction counts."""

LARGEST_PAIRED = 4094
"""Columns that an instruction counts, if they are even."""

LARGEST_KERNEL_WIDTH = (1 << MATRIX_FIELDS["kernel_x"].width) - 1


@dataclass(frozen=True, eq=False)
class Reduction:
    """Describes how a CONVOLVE's lanes run over the taps of a kernel.

    Parameters
    ----------
    first, channels : int
        Input bytes of a pixel from ``first`` on, lanes of one tap. Where ``merged``, a tap is a
        whole row of pixels, pads between them included.
    kernel : (y, x)
        In taps.
    steps : (y, x)
        Bytes from a tap to the next.
    segment : int
        Lanes until a new tile begins.
    tiles : int
    align_tap, align_row, merged : bool
    pairs : bool
        The first tile has R / 2 lanes, and takes two vectors a cycle.
    diagonal : bool
        A tile's weights are one word: lane r is of output channel r.
    sliding : Sliding, optional
        The only tile has no lanes: the kernel slides.
    """

    first: int
    channels: int
    kernel: tuple[int, int]
    steps: tuple[int, int]
    segment: int
    tiles: int
    align_tap: bool = False
    align_row: bool = False
    merged: bool = False
    pairs: bool = False
    diagonal: bool = False
    sliding: Sliding | None = None

    def twice_cycles(self, convolution: Convolution, configuration: Configuration) -> int:
        """Twice those of the array for a tile of channels, the loads of weights hidden."""
        view = convolution.output
        if self.sliding is not None:
            vectors = self.sliding.vectors((view.height, view.width))
            return 2 * max(vectors, configuration.tile_words)
        vectors = view.height * -(-view.width // configuration.pixels)
        return max(vectors, configuration.tile_words) * (2 * self.tiles - self.pairs)

    def lanes(self, rows: int) -> tuple[np.ndarray, ...]:
        """(ky, kx, c, counts) of every lane, each (tiles x R,)."""
        # pairs are one segment, half of whose first tile holds no lanes of its own
        segment_tiles = self.tiles if self.pairs else -(-self.segment // rows)
        tile, lane = np.divmod(np.arange(self.tiles * rows), rows)
        number, part = np.divmod(tile, segment_tiles)
        within = part * rows + lane
        first = np.ones(len(within), bool)
        if self.pairs:
            # the first tile's second half is the first one again, for another vector
            first = within < rows // 2
            within -= np.where(first, 0, rows // 2)
            first |= tile > 0
        tap, c = np.divmod(number * self.segment + within, self.channels)
        ky, kx = np.divmod(tap, self.kernel[1])
        return ky, kx, c, (within < self.segment) & (ky < self.kernel[0]) & first

    def is_legal(self, configuration: Configuration) -> bool:
        """Tells whether an instruction holds it and the memory delivers every lane.

        Lane r must lie at lane 0's address + r, modulo B; or exactly there, lane 0's a multiple of
        R, and in the same tap, if the hardware's windows are ``aligned``.
        """
        rows = configuration.rows
        if self.kernel[1] > LARGEST_KERNEL_WIDTH or max(self.tiles, self.channels) > LARGEST_COUNT:
            return False
        ky, kx, c, counts = self.lanes(rows)
        offset = (ky * self.steps[0] + kx * self.steps[1] + c).reshape(-1, rows)
        if configuration.aligned:
            tap = (ky * self.kernel[1] + kx).reshape(-1, rows)
            wrong = offset != offset[:, :1] // rows * rows + np.arange(rows)
            wrong |= tap != tap[:, :1]
        else:
            wrong = (offset - offset[:, :1] - np.arange(rows)) % configuration.banks != 0
        return not (wrong & counts.reshape(-1, rows)).any()


def _candidates(
    convolution: Convolution,
    first: int,
    count: int,
    pitches: tuple[int, int],
    configuration: Configuration,
) -> Iterator[Reduction]:
    """Ways to count the lanes of ``count`` input channels from ``first`` on."""
    rows = configuration.rows
    row_pitch, pixel_pitch = pitches
    kernel_y, kernel_x = convolution.kernel
    dilation_y, dilation_x = convolution.dilation
    steps = (dilation_y * row_pitch, dilation_x * pixel_pitch)
    whole = count == convolution.input.channels
    if convolution.covers_rows:
        run = (kernel_x - 1) * pixel_pitch + count
        shape = (0, run, (kernel_y, 1), steps)
        yield Reduction(*shape, kernel_y * run, -(-kernel_y * run // rows), merged=True)
        yield Reduction(
            *shape, run, kernel_y * -(-run // rows), align_row=kernel_y > 1, merged=True
        )
    taps = kernel_y * kernel_x
    for channels in sorted({count, pixel_pitch if whole else count}):
        shape = (first, channels, convolution.kernel, steps)
        run = kernel_x * channels
        yield Reduction(*shape, taps * channels, -(-taps * channels // rows))
        yield Reduction(*shape, run, kernel_y * -(-run // rows), align_row=True)
        if _takes_pairs(convolution, pixel_pitch, configuration):
            behind = max(taps * channels - rows // 2, 0)
            yield Reduction(*shape, taps * channels, 1 + -(-behind // rows), pairs=True)
    shape = (first, count, convolution.kernel, steps)
    yield Reduction(*shape, count, taps * -(-count // rows), align_tap=True)


def _takes_pairs(convolution: Convolution, pixel_pitch: int, configuration: Configuration) -> bool:
    """Tells whether neighbours may be two vectors of a cycle, in the two halves of the banks."""
    step = convolution.stride[1] * pixel_pitch
    return (
        configuration.takes_pairs
        and not convolution.accumulates
        and convolution.output.width % (4 if convolution.source_apart else 2) == 0
        and configuration.accumulator_depth % 2 == 0
        and convolution.output.width <= LARGEST_PAIRED
        and (step - configuration.rows // 2) % configuration.banks == 0
    )


def _diagonal_candidates(
    convolution: Convolution,
    first: int,
    count: int,
    pitches: tuple[int, int],
    configuration: Configuration,
) -> Iterator[Reduction]:
    """Ways to count the lanes of a depthwise convolution of ``count`` channels from ``first`` on.

    Where the array has more rows than columns a tile holds R / C taps, of C lanes each whatever the
    channels: the weights of the lanes behind them are zero.
    """
    rows, columns = configuration.rows, configuration.columns
    kernel_y, kernel_x = convolution.kernel
    dilation_y, dilation_x = convolution.dilation
    steps = (dilation_y * pitches[0], dilation_x * pitches[1])
    if rows > columns and first + columns <= pitches[1]:
        shape = (first, columns, convolution.kernel, steps)
        run, taps = kernel_x * columns, kernel_x * kernel_y
        yield Reduction(*shape, taps * columns, -(-taps * columns // rows), diagonal=True)
        tiles = kernel_y * -(-run // rows)
        yield Reduction(*shape, run, tiles, align_row=True, diagonal=True)
    shape = (first, count, convolution.kernel, steps)
    yield Reduction(*shape, count, kernel_y * kernel_x, align_tap=True, diagonal=True)


def choose_reduction(
    convolution: Convolution,
    first: int,
    count: int,
    pitches: tuple[int, int],
    configuration: Configuration,
    *,
    keeps: bool = True,
    diagonal: bool = True,
) -> Reduction:
    """The legal way with the fewest tiles; ``pitches`` are the input's (row, pixel), in bytes.

    Input rows are kept in the array only if it ``keeps`` them. The weights lie on the array's
    diagonal, where they can, only if it may be ``diagonal``.

    Aligning every tap suits the memory always, as the channels of a tap are contiguous.

    Raises
    ------
    CapacityError
        If no instruction counts so far.
    """
    rows = configuration.rows
    channels = configuration.columns // (2 if convolution.apart else 1)
    sliding = [
        Reduction(first, channels, (1, 1), (0, 0), configuration.columns, 1, sliding=s)
        for s in slidings(convolution, configuration, pitches)
        if keeps or not s.keeps
    ]
    if convolution.apart:
        found = iter(())
    elif diagonal and is_diagonal(convolution, configuration):
        found = _diagonal_candidates(convolution, first, count, pitches, configuration)
    else:
        found = _candidates(convolution, first, count, pitches, configuration)
    legal = sliding + [reduction for reduction in found if reduction.is_legal(configuration)]
    if not legal:
        raise CapacityError(
            f"layer {convolution.node.name!r}: its reduction over kernel {convolution.kernel} and"
            f" {count} channels must be at most {LARGEST_COUNT} tiles of {rows} lanes and"
            f" {LARGEST_KERNEL_WIDTH} taps wide, or {LARGEST_COUNT} bytes a row"
        )
    return min(legal, key=lambda way: way.twice_cycles(convolution, configuration))


def is_diagonal(convolution: Convolution, configuration: Configuration) -> bool:
    """Tells whether a convolution's weights lie on the array's diagonal.

    A word of the weight memory has one byte for row r and the rows C further on in its chain.
    """
    return convolution.is_diagonal and configuration.tile_words <= configuration.columns


@dataclass(frozen=True, eq=False)
class ChannelTile:
    """Output channels computed together, their reduction, and the rounding that they share."""

    first: int
    count: int
    reduction: Reduction
    rounding: int


def channel_spans(
    convolution: Convolution, configuration: Configuration
) -> Iterator[tuple[int, int, int]]:
    """First, count and rounding of the channels that are computed together.

    Raises
    ------
    CapacityError
        If channels of one slice of L need other roundings.
    """
    width = configuration.columns
    diagonal = is_diagonal(convolution, configuration)
    if diagonal:
        width = min(width, configuration.rows)
    outputs = convolution.output.channels
    runs = rounding_runs(convolution.requantization, outputs, configuration.lanes)
    if runs is None:
        raise CapacityError(
            f"layer {convolution.node.name!r}: channels of one slice must have one rounding"
        )
    for start, end, rounding in runs:
        first = start
        while first < end:
            # what begins within an aligned window ends with it, so that the next has the diagonal
            begun = first % width if diagonal and configuration.aligned else 0
            behind = min(first + width - begun, end)
            yield first, behind - first, rounding
            first = behind


def channel_tiles(
    convolution: Convolution,
    pitches: tuple[int, int],
    configuration: Configuration,
    *,
    keeps: bool = True,
) -> tuple[ChannelTile, ...]:
    """The output in tiles of C channels; of min(R, C) where the weights are diagonal.

    A tile ends early where the channels behind it need another rounding. Where windows are aligned
    and the next one begins within a word, its inputs begin before it: they do not lie on the
    diagonal.
    """
    rows = configuration.rows
    outputs, groups = convolution.output.channels, convolution.groups
    filters, inputs = outputs // groups, convolution.input.channels // groups
    tiles, known = [], {}
    for first, count, rounding in channel_spans(convolution, configuration):
        low, high = first // filters * inputs, ((first + count - 1) // filters + 1) * inputs
        if configuration.aligned:
            low = low // rows * rows
        key = (low, high, low == first)
        if key not in known:
            known[key] = choose_reduction(
                convolution,
                low,
                high - low,
                pitches,
                configuration,
                keeps=keeps,
                diagonal=low == first,
            )
        tiles.append(ChannelTile(first, count, known[key], rounding))
    return tuple(tiles)


def _expanded(convolution: Convolution, tile: ChannelTile) -> np.ndarray:
    """Weights of a channel tile over the input channels it reads, (count, ky, kx, channels)."""
    groups, reduction = convolution.groups, tile.reduction
    if groups == 1:
        return convolution.weights[tile.first : tile.first + tile.count]
    filters = convolution.output.channels // groups
    inputs = convolution.input.channels // groups
    shape = (tile.count, *convolution.kernel, reduction.channels)
    expanded = np.zeros(shape, np.int8)
    for i in range(tile.count):
        output = tile.first + i
        start = output // filters * inputs - reduction.first
        expanded[i, :, :, start : start + inputs] = convolution.weights[output]
    return expanded


def weight_words(
    convolution: Convolution, tile: ChannelTile, pixel_pitch: int, configuration: Configuration
) -> np.ndarray:
    """The weight memory's words for a channel tile, int8 (words, W, C), zero on idle lanes."""
    rows, columns, depth = configuration.rows, configuration.columns, configuration.tile_words
    chains, reduction = configuration.weight_rows, tile.reduction
    if reduction.sliding is not None:
        taps = convolution.weights[tile.first : tile.first + tile.count, :, :, 0]
        return _in_words(reduction.sliding.words(taps, configuration), configuration)
    ky, kx, c, counts = reduction.lanes(rows)
    if reduction.diagonal:
        words = np.zeros((reduction.tiles, chains, columns), np.int8)
        used = np.flatnonzero(counts & (c < tile.count))
        number, row = np.divmod(used, rows)
        taps = convolution.weights[tile.first + c[used], ky[used], kx[used], 0]
        words[number, row // depth, row % columns] = taps
        return words
    weights = _expanded(convolution, tile)
    if reduction.merged:
        kx, c = np.divmod(c, pixel_pitch)
    used = np.flatnonzero(counts & (c < weights.shape[3]))
    lanes = np.zeros((reduction.tiles * rows, columns), np.int8)
    lanes[used, : tile.count] = weights[:, ky[used], kx[used], c[used]].T
    if reduction.pairs:
        lanes[rows // 2 : rows] = lanes[: rows // 2]
    return _in_words(lanes, configuration)


def _in_words(lanes: np.ndarray, configuration: Configuration) -> np.ndarray:
    """Tiles of R lanes each, int8 (lanes, C), as words, int8 (words, W, C)."""
    chains, columns = configuration.weight_rows, configuration.columns
    # word q of a tile has row q of each chain
    shaped = lanes.reshape(-1, chains, configuration.tile_words, columns)
    return shaped.swapaxes(1, 2).reshape(-1, chains, columns)

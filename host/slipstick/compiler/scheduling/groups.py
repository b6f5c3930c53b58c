"""Groups of operations that are emitted together: a convolution and the maps that follow it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from ..codegen.convolution import ConvolutionEmitter, Rectangle, Span
from ..codegen.map import MapEmitter
from ..codegen.split_reduction import is_one_tap, split_reduction
from ..mapping.depthwise_window import KEPT_SIDE
from ..timing.timeline import Instruction

LARGEST_LOOP = 4095
"""Largest row, group or column count that an instruction holds."""


@dataclass(frozen=True)
class Tiling:
    """Describes how a group's output is cut into row tiles, and which of its two loops is outer.

    Of so many tiles of channels, so many tiles of the reduction come ``early``, before all else.
    """

    row_tiles: int
    channels_outside: bool = False
    early: tuple[int, int] = (0, 0)


def split(count: int, parts: int) -> list[Span]:
    """0..count in ``parts`` nearly equal spans, the smaller ones last."""
    small, rest = divmod(count, parts)
    sizes = [small + 1] * rest + [small] * (parts - rest)
    edges = [0, *itertools.accumulate(sizes)]
    return [(low, high) for low, high in itertools.pairwise(edges) if high > low]


class _Progress:
    """Records which rows of a tensor are written, by tile of channels."""

    def __init__(self, rows: int, tiles: int, width: int) -> None:
        self._columns, self._width = np.zeros((rows, tiles), np.int64), width

    def write(self, rows: Span, columns: int, tile: int) -> None:
        """So many more columns of these rows are there."""
        self._columns[rows[0] : rows[1], tile] += columns

    def has(self, rows: Span, tile: int) -> bool:
        """Tells whether all of these rows are written."""
        return bool((self._columns[rows[0] : rows[1], tile] >= self._width).all())


@dataclass(frozen=True)
class Group:
    """A convolution and maps that take their operands from it, or a map alone.

    Each map's work on a tile of the convolution follows that tile's DRAIN at once, so that it runs
    while the array is at the next tile. With ``trailing_tiles`` the convolution writes over its own
    input: at least so many tiles of rows, each finished before the next one begins.
    """

    first: int
    convolution: ConvolutionEmitter | None
    maps: tuple[MapEmitter, ...]
    configuration: Configuration
    load_table: bool = False
    trailing_tiles: int = 0

    @property
    def name(self) -> str:
        """The layer that it begins with."""
        if self.convolution is None:
            return self.maps[0].map.node.name
        return self.convolution.convolution.node.name

    @property
    def has_turns(self) -> bool:
        """It has tiles of channels, which one instruction may do in turns."""
        return self.convolution is not None and len(self.convolution.tiles) > 1

    def _channel_spans(self) -> list[Span]:
        if self.convolution is None:
            return [(0, self.maps[0].map.output.channels)]
        return [(tile.first, tile.first + tile.count) for tile in self.convolution.tiles]

    @property
    def rows(self) -> int:
        """Rows of what the first of its operations makes."""
        if self.convolution is None:
            return self.maps[0].map.output.height
        return self.convolution.convolution.output.height

    def columns(self) -> list[Span]:
        """Column tiles: one, unless a single row of pixels is more than the accumulators hold."""
        if self.convolution is None:
            return [(0, self.maps[0].map.output.width)]
        pixels, depth = self.configuration.pixels, self.configuration.accumulator_depth
        width = self.convolution.convolution.output.width
        if self.convolution.convolution.source_apart:
            return [(0, width // 2), (width // 2, width)]
        if self.convolution.kept_along == 1:
            return split(width, -(-width // KEPT_SIDE))
        largest = min(min(depth, LARGEST_LOOP) * pixels, LARGEST_LOOP // pixels * pixels)
        return [(x, min(x + largest, width)) for x in range(0, width, largest)]

    def fewest_tiles(self) -> int:
        """The smallest number of row tiles that the accumulators allow."""
        most_rows = LARGEST_LOOP
        if self.convolution is not None:
            groups = -(-self.columns()[0][1] // self.configuration.pixels)
            most_rows = min(LARGEST_LOOP, self.configuration.accumulator_depth // groups)
            if self.convolution.kept_along == 0:
                most_rows = min(most_rows, KEPT_SIDE)
        return max(-(-self.rows // most_rows), self.trailing_tiles)

    def tilings(self) -> list[Tiling]:
        """The tilings worth trying, the simplest first."""
        fewest = self.fewest_tiles()
        if self.convolution is not None and self.convolution.convolution.is_partial:
            # its sums must meet those of the other parts in the accumulators
            places, tiles = fewest * len(self.columns()), len(self._channel_spans())
            banks = 2 << self._parts(self._rectangles(Tiling(fewest)))
            if places > 1 or tiles > (banks if self.configuration.largest_parts else 1):
                raise CapacityError(
                    f"layer {self.name!r}: the sums of a part of its reduction must be one tile of"
                    " the accumulators, or one for each bank"
                )
            return [Tiling(fewest)]
        if self.convolution is not None and self.convolution.kept_along == 1:
            return [Tiling(1), Tiling(1, channels_outside=True)]
        counts = {fewest + extra for extra in (0, 1, 2, 3)} | {4, 6, 8, 2 * fewest}
        spans = len(self._channel_spans())
        found = []
        for count in sorted(counts):
            if fewest <= count <= self.rows:
                found.append(Tiling(count))
                if count > 1 and spans > 1 and not self.trailing_tiles:
                    found.append(Tiling(count, channels_outside=True))
        found = found or [Tiling(self.rows)]
        return [*found, *(replace(found[0], early=early) for early in self._early(found[0]))]

    def _early(self, tiling: Tiling) -> list[tuple[int, int]]:
        """Parts of the first rectangle's reductions that may come before the rest."""
        if self.convolution is None or not self.configuration.traits.overlaps_streams:
            return []
        tiles, convolution = self.convolution.tiles, self.convolution.convolution
        least = min(tile.reduction.tiles for tile in tiles)
        if least < 2 or not all(is_one_tap(convolution, tile) for tile in tiles):
            return []
        # each has a bank of its own
        most = min(len(tiles), 2 << self._parts(self._rectangles(tiling)))
        counts = [count for count in (2, 4, 8) if count <= most]
        return sorted(itertools.product(counts, {least // 2, least - 1}))

    def emit(self, tiling: Tiling) -> list[Instruction]:
        """Its instructions, in an order in which they can run."""
        if self.convolution is None:
            instructions = self._tables()
            for span, m in itertools.product(split(self.rows, tiling.row_tiles), self.maps):
                instructions += m.emit(span, self._channel_spans()[0])
            return instructions
        instructions = list(self._interleave(tiling))
        # the table is loaded while the array works on the first tile
        return [instructions[0], *self._tables(), *instructions[1:]]

    def _tables(self) -> list[Instruction]:
        if not self.load_table:
            return []
        emitters = (*self.maps, *([self.convolution] if self.convolution else []))
        return [each.load_table() for each in emitters if each.table is not None]

    def _rectangles(self, tiling: Tiling) -> list[Rectangle]:
        rows = split(self.rows, tiling.row_tiles)
        return [Rectangle(*pair) for pair in itertools.product(rows, self.columns())]

    def _interleave(self, tiling: Tiling) -> Iterator[Instruction]:
        assert self.convolution is not None
        spans = self._channel_spans()
        rectangles = self._rectangles(tiling)
        order = list(itertools.product(rectangles, range(len(spans))))
        if tiling.channels_outside:
            order.sort(key=lambda item: item[1])
        convolution = self.convolution.convolution
        view, parts = convolution.output, self._parts(rectangles)
        progress = {self.convolution.buffer: _Progress(view.height, len(spans), view.width)}
        for m in self.maps:
            view = m.map.output
            progress[m.buffer] = _Progress(view.height, len(spans), view.width)
        emitted = [
            list(self.convolution.emit(*place, number, parts)) for number, place in enumerate(order)
        ]
        count, tiles = tiling.early
        for instructions in emitted[:count]:
            early, instructions[0] = split_reduction(instructions[0], tiles, self.configuration)
            yield early
        for (rectangle, tile), instructions in zip(order, emitted, strict=True):
            yield from instructions
            width = rectangle.columns[1] - rectangle.columns[0]
            progress[self.convolution.buffer].write(rectangle.rows, width, tile)
            for m in self.maps:
                yield from self._follow(m, progress, tile, spans[tile])

    def _parts(self, rectangles: Sequence[Rectangle]) -> int:
        """Counts how often the banks may be halved for tiles as small as these."""
        assert self.convolution is not None
        if self.convolution.convolution.is_partial and not self.has_turns:
            return 0
        words = max(rectangle.words(self.configuration.pixels) for rectangle in rectangles)
        depth = self.configuration.accumulator_depth
        most = self.configuration.largest_parts
        sizes = (words <= depth >> parts for parts in range(1, most + 1))
        return sum(sizes)

    def _follow(
        self, m: MapEmitter, progress: dict[str, _Progress], tile: int, channels: Span
    ) -> Iterator[Instruction]:
        """The rows of a map that have all their operands now, and had not before."""
        own = progress[m.buffer]
        sources = [name for name in m.source_buffers if name in progress]
        ready = [
            row
            for row in range(m.map.output.height)
            if not own.has((row, row + 1), tile)
            and all(progress[name].has(m.rows_needed(row, name), tile) for name in sources)
        ]
        for _, run in itertools.groupby(enumerate(ready), lambda item: item[1] - item[0]):
            positions = [row for _, row in run]
            rows = (positions[0], positions[-1] + 1)
            yield from m.emit(rows, channels)
            own.write(rows, m.map.output.width, tile)

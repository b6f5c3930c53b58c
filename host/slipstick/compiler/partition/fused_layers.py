"""Layers that are computed together, tile by tile, so that only their ends travel."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.dma.transfer import WORD_BYTES

from ..ir.operations import Convolution, Map, View
from ..mapping.activation_layout import round_up
from ..mapping.reduction import is_diagonal
from ..scheduling.groups import LARGEST_LOOP, split
from .cost_estimate import (
    Budget,
    cycles,
    demand,
    peak_bytes,
    sliding_bytes,
    together,
    transferred,
)
from .halo import Region, Span, gathered, goes_down, group_sizes, needed, restrict
from .subprograms import Job

LONGEST = 16
"""Layers of a segment, at most."""

Part = tuple[int, Convolution | Map]
"""An operation, and which of the network's it is."""


RUN_CYCLES = 500
"""Cycles of a run besides its work: requests and answers, filling and emptying of pipelines."""

_MORE_CHANNEL_TILES = 3
_MOST_COLUMNS = 8
"""Tiles side by side, at most: each has columns that its neighbours compute as well."""


def make_job(
    parts: Sequence[Part], outputs: Mapping[str, Region], whole: Mapping[str, View] | None = None
) -> Job:
    """The job that makes these boxes of the outputs: each operation makes what is needed of it.

    All rows and columns of the inputs in ``whole`` are there.
    """
    regions = find_regions(parts, outputs)
    made = {operation.result for _, operation in parts}
    for name, view in (whole or {}).items():
        if name in regions and name not in made:
            sides = {"rows": (0, view.height), "columns": (0, view.width)}
            regions[name] = dataclasses.replace(regions[name], **sides)
    restricted = tuple(
        restrict(operation, regions[operation.result], regions) for _, operation in parts
    )
    return Job(restricted, tuple(number for number, _ in parts), regions, outputs)


def find_regions(parts: Sequence[Part], outputs: Mapping[str, Region]) -> dict[str, Region]:
    """Finds the part of each tensor that these boxes of the outputs need."""
    regions = dict(outputs)
    made = {operation.result: operation.output for _, operation in parts}
    for _, operation in reversed(parts):
        if isinstance(operation, Map) and operation.gathers:
            regions[operation.result] = Region.whole(operation.output)
            # what is made here has all of its channels: the operands of a sum have equal pitches
            needs = {
                name: dataclasses.replace(need, channels=(0, made[name].channels))
                if name in made
                else need
                for name, need in gathered(operation).items()
            }
        else:
            needs = dict.fromkeys(operation.sources, needed(operation, regions[operation.result]))
        for name, need in needs.items():
            regions[name] = regions[name].hull(need) if name in regions else need
    for name in regions.keys() - made.keys():
        regions[name] = _from_a_word(regions[name])
    return regions


def _from_a_word(region: Region) -> Region:
    """The box with columns before it, so that each of its rows begins with a word of DRAM."""
    first, end = region.columns
    step = WORD_BYTES // math.gcd(WORD_BYTES, region.view.channels)
    return dataclasses.replace(region, columns=(first // step * step, end))


def channel_unit(operation: Convolution | Map, budget: Budget) -> int:
    """Output channels that should not be separated; with DRAM, whole words of it."""
    word = WORD_BYTES if budget.hardware.dram else 1
    return math.lcm(word, _together(operation, budget))


def _together(operation: Convolution | Map, budget: Budget) -> int:
    """Output channels that the hardware computes at once."""
    if isinstance(operation, Map):
        return max(budget.hardware.rows, budget.hardware.lanes)
    if is_diagonal(operation, budget.hardware):
        return budget.hardware.rows
    if operation.groups == 1:
        return budget.hardware.columns
    # whole groups, and whole slices
    return math.lcm(group_sizes(operation)[0], budget.hardware.lanes)


@dataclass(frozen=True)
class Grid:
    """In how many tiles a segment is computed, along each side of its outputs.

    Parameters
    ----------
    rows, columns : int
    channels : int
        More than one: each tile loads its own weights.
    """

    rows: int = 1
    columns: int = 1
    channels: int = 1

    @property
    def places(self) -> int:
        """Tiles of the same channels."""
        return self.rows * self.columns

    @property
    def tiles(self) -> int:
        """All of them."""
        return self.places * self.channels


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive operations whose results in between stay on the device.

    Parameters
    ----------
    parts : tuple of Part
    outputs : tuple of str
        Those of its results that others read.
    """

    parts: tuple[Part, ...]
    outputs: tuple[str, ...]

    @property
    def _ends(self) -> list[Convolution | Map]:
        return [operation for _, operation in self.parts if operation.result in self.outputs]

    @property
    def channels(self) -> int:
        """Counts the channels of its first output."""
        return self._ends[0].output.channels

    @property
    def gathers(self) -> bool:
        """A map of it copies from many places: it is computed whole."""
        return any(isinstance(made, Map) and made.gathers for _, made in self.parts)

    @property
    def most(self) -> Grid:
        """As many tiles as its smallest output has rows and columns."""
        if self.gathers:
            return Grid()
        views = [operation.output for operation in self._ends]
        return Grid(min(view.height for view in views), min(view.width for view in views))

    def channel_unit(self, budget: Budget) -> int | None:
        """Channels that a tile's number is a multiple of; None if they cannot be cut.

        Behind the first of its layers each channel must come from the channels of the same number:
        depthwise convolutions, pooling, sums.
        """
        first, *others = (operation for _, operation in self.parts)
        separable = all(
            isinstance(made, Map) or is_diagonal(made, budget.hardware) for made in others
        )
        widths = {operation.output.channels for operation in self._ends}
        if self.gathers or not separable or len(widths) > 1:
            return None
        return math.lcm(*(channel_unit(made, budget) for made in (first, *others)))

    def channel_spans(self, grid: Grid, unit: int) -> list[Span | None]:
        """The channels of each tile, of one size but for the last; None: all of each output's."""
        if grid.channels == 1:
            return [None]
        width = self._ends[0].output.channels
        step = round_up(-(-width // grid.channels), unit)
        return [(low, min(low + step, width)) for low in range(0, width, step)]

    def channel_grids(self, unit: int, fewest: int) -> Iterator[Grid]:
        """Lists the numbers of tiles of channels, from ``fewest`` on, that make another size."""
        units = -(-self.channels // unit)
        for count in range(fewest, units + 1):
            grid = Grid(channels=count)
            if len(self.channel_spans(grid, unit)) == count:
                yield grid

    def box(self, grid: Grid, row: int, column: int, channels: Span | None) -> dict[str, Region]:
        """Returns the box of each output that a tile makes."""
        found = {}
        for operation in self._ends:
            view = operation.output
            rows = split(view.height, grid.rows)[row]
            columns = split(view.width, grid.columns)[column]
            found[operation.result] = Region(rows, columns, channels or (0, view.channels))
        return found

    def jobs(self, grid: Grid, budget: Budget) -> Iterator[Job]:
        """They make all of the outputs: of all places first, then of the next channels."""
        spans = self.channel_spans(grid, self.channel_unit(budget) or 1)
        down = self.goes_down(grid, len(spans))
        for number, span in enumerate(spans):
            # tiles one above the other have more instructions in common
            places = list(itertools.product(range(grid.columns), range(grid.rows)))
            if budget.hardware.dram and (down or number % 2):
                places.reverse()
            for column, row in places:
                job = make_job(self.parts, self.box(grid, row, column, span))
                kept = self.kept(grid) if span is not spans[-1] else frozenset()
                yield dataclasses.replace(job, kept=kept)

    def goes_down(self, grid: Grid, passes: int) -> bool:
        """Tells whether the last stripe is made first; see ``kept_rows``."""
        if grid.rows == 1:
            return False
        boxes = (find_regions(self.parts, self.box(grid, row, 0, None)) for row in (0, 1))
        first, second = boxes
        made = {operation.result for _, operation in self.parts}
        return any(
            goes_down((first[name].rows, second[name].rows), grid.rows, passes)
            for name in first.keys() - made
        )

    def kept(self, grid: Grid) -> frozenset[str]:
        """Inputs that each tile needs all of."""
        first = self.parts[0][1]
        if grid.channels == 1 or grid.places > 1 or isinstance(first, Map) or first.groups > 1:
            return frozenset()
        return frozenset(first.sources)


@dataclass(frozen=True)
class Choice:
    """In what tiles a segment is computed, and its cost in cycles, transfers included."""

    grid: Grid
    cost: int


def choices(segment: Segment, budget: Budget) -> list[Choice]:
    """Tiles that fit, the cheapest first.

    Fewer tiles compute fewer places twice. Channels are cut where weights do not fit otherwise, or
    where all rows and columns of what lies between do not.
    """
    unit = segment.channel_unit(budget)
    found: list[Choice] = []
    if demand([made for _, made in segment.parts], budget.hardware).holds(budget):
        for columns in range(1, min(_MOST_COLUMNS, segment.most.columns) + 1):
            grid = _fewest_rows(segment, Grid(columns=columns), 1, budget)
            if grid is not None:
                found.append(Choice(grid, _cost(segment, grid, 1, budget)))
                if grid.rows == 1:
                    break
    if unit is not None:
        found += _channel_tiles(segment, unit, budget)
    return sorted(found, key=lambda choice: choice.cost)


def _fewest_rows(segment: Segment, grid: Grid, unit: int, budget: Budget) -> Grid | None:
    """The same columns and channels in the fewest stripes that fit."""
    most, count = segment.most.rows, grid.rows
    while count <= most:
        finer = dataclasses.replace(grid, rows=count)
        if _fits(segment, finer, unit, budget):
            return finer
        # the finest grid as well
        count = min(count + max(1, count // 4), max(most, count + 1))
    return None


def _channel_tiles(segment: Segment, unit: int, budget: Budget) -> Iterator[Choice]:
    """Tiles of channels: with all rows and columns, the fewest that fit, and some more; and the
    fewest whose weights fit, in stripes."""
    grids = list(segment.channel_grids(unit, 2))
    fitting = (grid for grid in grids if _fits(segment, grid, unit, budget))
    for grid in itertools.islice(fitting, _MORE_CHANNEL_TILES):
        yield Choice(grid, _cost(segment, grid, unit, budget))
    held = next((grid for grid in grids if _holds(segment, grid, unit, budget)), None)
    striped = held and _fewest_rows(segment, dataclasses.replace(held, rows=2), unit, budget)
    if striped is not None:
        yield Choice(striped, _cost(segment, striped, unit, budget))


def _holds(segment: Segment, grid: Grid, unit: int, budget: Budget) -> bool:
    """Tells whether the weights of a tile fit."""
    span = segment.channel_spans(grid, unit)[0]
    job = make_job(segment.parts, segment.box(grid, 0, 0, span))
    return demand(job.operations, budget.hardware).holds(budget)


def _fits(segment: Segment, grid: Grid, unit: int, budget: Budget) -> bool:
    """The first tiles are the largest; those inside need places on all sides."""
    operations = [operation for _, operation in segment.parts]
    span = segment.channel_spans(grid, unit)[0]
    for row in {0, min(1, grid.rows - 1), grid.rows // 2}:
        for column in {0, min(1, grid.columns - 1), grid.columns // 2}:
            box = segment.box(grid, row, column, span)
            regions = find_regions(segment.parts, box)
            if any(region.view.width > LARGEST_LOOP for region in regions.values()):
                return False
            lasting = {*box, *segment.kept(grid)}
            if peak_bytes(operations, regions, lasting, budget.hardware) > budget.activation_bytes:
                return False
    job = make_job(segment.parts, segment.box(grid, 0, 0, span))
    return demand(job.operations, budget.hardware).fits(budget)


def _cost(segment: Segment, grid: Grid, unit: int, budget: Budget) -> int:
    """Estimates the cycles of all tiles: those at the edges need fewer places around them."""
    hardware, whole = budget.hardware, [operation for _, operation in segment.parts]
    span = segment.channel_spans(grid, unit)[0]
    work = moved = loaded = kept = weights = 0
    widths = set[tuple[int, ...]]()
    for row, rows in _alike(grid.rows):
        for column, columns in _alike(grid.columns):
            job = make_job(segment.parts, segment.box(grid, row, column, span))
            count = rows * columns * grid.channels
            work += count * RUN_CYCLES
            work += count * sum(cycles(operation, hardware) for operation in job.operations)
            moved += count * transferred(job, whole, hardware)
            needs = demand(job.operations, hardware)
            # tiles of another width have their weights in another order
            width = tuple(region.view.width for region in job.regions.values())
            loaded += needs.loaded_bytes if width not in widths else 0
            widths.add(width)
            weights = needs.weight_bytes
            kept = sum(job.regions[name].view.elements for name in segment.kept(grid))
    # what is kept comes once to each place where tiles lie; in a batch, once more for each part of
    # the weights that is there while all images are computed
    times = 1 if budget.whole_activations else 2
    if budget.images > 1:
        half = hardware.weight_bytes // (2 if budget.whole_weights else 1)
        times *= -(-grid.channels // max(1, half // max(weights, 1)))
    moved -= kept * max(0, grid.tiles - times)
    moved -= _still_there(segment, grid, unit, budget)
    return together(work, grid.channels * loaded, moved, budget, weights)


def _still_there(segment: Segment, grid: Grid, unit: int, budget: Budget) -> int:
    """Bytes of inputs that are on the chip from a tile before, nearly; see ``kept_rows``."""
    if not budget.hardware.dram or grid.rows == 1:
        return 0
    spans = segment.channel_spans(grid, unit)
    jobs = [make_job(segment.parts, segment.box(grid, row, 0, spans[0])) for row in (1, 0)]
    if segment.goes_down(grid, len(spans)):
        if len(segment.parts) > 1:
            return 0
        saved = sliding_bytes(jobs[0], jobs[1], grid.rows, budget.whole)
        return saved * grid.columns * len(spans)
    # in a batch, the other images come between two passes
    if budget.images > 1:
        return 0
    source = jobs[0].regions[segment.parts[0][1].sources[0]].view.elements
    return source * (len(spans) - 1) * (1 if budget.whole_activations else 2)


def _alike(count: int) -> list[tuple[int, int]]:
    """Along an axis: the first tile, the last one, and one between; how many are like them."""
    edges = sorted({0, count - 1})
    inner = [(count // 2, count - 2)] if count > 2 else []
    return [*((edge, 1) for edge in edges), *inner]

"""Segments one after the other whose maps stay on the chip: only weights come between them.

Late layers have small maps and many weights. Their maps are whole in the activation memory, each at
one place for as long as a segment needs it. What lies within a segment is there for one tile of
channels at a time.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...program.steps import Placement
from ..ir.operations import Map, View
from ..mapping.activation_layout import round_up
from ..memory.planner import Block, PlanError, plan_thoroughly
from .cost_estimate import Budget, demand, peak_bytes
from .fused_layers import Grid, Segment, find_regions, make_job
from .halo import Region
from .subprograms import Job


@dataclass(frozen=True, eq=False)
class _Map:
    """A map that is on the chip from one segment to another, both included."""

    name: str
    view: View
    pixel_pitch: int
    first: int
    last: int

    @property
    def row_pitch(self) -> int:
        return self.view.width * self.pixel_pitch

    @property
    def bytes(self) -> int:
        return self.view.height * self.row_pitch

    def part(self, address: int, region: Region) -> Placement:
        """Returns the placement of a box of it, if all of it begins at an address."""
        y, x, channel = region.origin
        offset = y * self.row_pitch + x * self.pixel_pitch + channel
        view = region.view
        return Placement(
            address + offset,
            self.row_pitch,
            self.pixel_pitch,
            view.height,
            view.width,
            view.channels,
        )


class ChainPlanner:
    """Plans chains of segments; see ``jobs``.

    Parameters
    ----------
    configuration : Configuration
    budget : Budget
        Of a tile: all of the activation memory.
    """

    def __init__(self, configuration: Configuration, budget: Budget) -> None:
        self._configuration, self._budget = configuration, budget

    def jobs(self, segments: Sequence[Segment], wanted: Collection[str]) -> list[list[Job]] | None:
        """The jobs of each segment.

        Parameters
        ----------
        segments : sequence of Segment
            One behind the other.
        wanted : collection of str
            Their results that are read elsewhere, or the network's.

        Returns
        -------
        list of lists of Job, or None
            None if the maps do not fit.
        """
        if any(segment.gathers for segment in segments):
            return None
        # what cannot be cut along its channels is one tile
        units = [segment.channel_unit(self._budget) or segment.channels for segment in segments]
        maps = {each.name: each for each in self._maps(segments, wanted)}
        views = {name: each.view for name, each in maps.items()}
        grids = []
        for segment, unit in zip(segments, units, strict=True):
            grid = self._fewest(segment, unit, Grid())
            if grid is None:
                return None
            grids.append(grid)
        while True:
            try:
                addresses, rooms = self._plan(segments, grids, units, maps)
                break
            except PlanError as error:
                at = error.moment
                more = self._fewest(segments[at], units[at], grids[at], above=True)
                if more is None:
                    return None
                grids[at] = more
        uploaded = set[str]()
        found = []
        for number, (segment, grid, unit) in enumerate(zip(segments, grids, units, strict=True)):
            jobs = []
            for span in segment.channel_spans(grid, unit):
                job = make_job(segment.parts, segment.box(grid, 0, 0, span), views)
                pinned = {
                    name: maps[name].part(addresses[name], region)
                    for name, region in job.regions.items()
                    if name in maps
                }
                pinned |= _in_place(job, pinned)
                new = set(job.inputs) - uploaded
                if any(job.regions[name] != Region.whole(views[name]) for name in new):
                    return None
                jobs.append(
                    dataclasses.replace(
                        job,
                        owned={name: job.owned[name] for name in job.owned if name in wanted},
                        pinned=pinned,
                        resident=frozenset(set(job.inputs) & uploaded),
                        base=addresses[_inner(number)],
                        room=rooms[number],
                        goes_on=True,
                    )
                )
                uploaded |= {name for name in job.regions if name in maps}
            found.append(jobs)
        found[-1][-1] = dataclasses.replace(found[-1][-1], goes_on=False)
        return found

    def _fewest(
        self, segment: Segment, unit: int, grid: Grid, *, above: bool = False
    ) -> Grid | None:
        """The fewest tiles of channels whose weights fit; ``above``: more than those of a grid."""
        for more in segment.channel_grids(unit, grid.channels + above):
            span = segment.channel_spans(more, unit)[0]
            job = make_job(segment.parts, segment.box(more, 0, 0, span))
            if demand(job.operations, self._budget.hardware).fits(self._budget):
                return more
        return None

    def _maps(self, segments: Sequence[Segment], wanted: Collection[str]) -> Iterator[_Map]:
        """Yields the maps between segments, and before and behind them."""
        hardware = self._configuration
        step = max(hardware.lanes, hardware.rows if hardware.aligned else 1)
        made: dict[str, int] = {}
        # what is read with a stride may be read whole by another segment
        boxes: dict[str, Region] = {}
        lasts: dict[str, int] = {}
        for number, segment in enumerate(segments):
            inner = {part.result for _, part in segment.parts} - set(segment.outputs)
            regions = find_regions(segment.parts, segment.box(Grid(), 0, 0, None))
            for name, region in regions.items():
                if name in inner:
                    continue
                made.setdefault(name, number)
                boxes[name] = boxes[name].hull(region) if name in boxes else region
                lasts[name] = number
        for name in made:
            last = len(segments) - 1 if name in wanted else lasts[name]
            view = boxes[name].view
            yield _Map(name, view, round_up(view.channels, step), made[name], last)

    def _plan(
        self,
        segments: Sequence[Segment],
        grids: Sequence[Grid],
        units: Sequence[int],
        maps: Mapping[str, _Map],
    ) -> tuple[dict[str, int], list[int]]:
        """Addresses of the maps, and of each segment's own memory; and the bytes of that."""
        hardware = self._configuration
        blocks = [Block(each.name, each.bytes, each.first, each.last) for each in maps.values()]
        rooms = list[int]()
        for number, (segment, grid, unit) in enumerate(zip(segments, grids, units, strict=True)):
            span = segment.channel_spans(grid, unit)[0]
            views = {name: each.view for name, each in maps.items()}
            job = make_job(segment.parts, segment.box(grid, 0, 0, span), views)
            regions = job.regions
            there = {name: maps[name].part(0, regions[name]) for name in maps.keys() & regions}
            there |= _in_place(job, there)
            own = {name: region for name, region in regions.items() if name not in there}
            size = peak_bytes(job.operations, own, (), hardware)
            # the compiler may choose longer pitches of rows
            size += sum(region.view.height * hardware.rows for region in own.values())
            rooms.append(max(size, 1))
            blocks.append(Block(_inner(number), rooms[-1], number, number))
        alignment = max(hardware.rows, hardware.lanes)
        titles = [segment.parts[0][1].node.name for segment in segments]
        return plan_thoroughly(blocks, hardware.activation_bytes, alignment, titles), rooms


def _in_place(job: Job, pinned: Mapping[str, Placement]) -> dict[str, Placement]:
    """Places an operand of each sum whose result is pinned: the result replaces it."""
    found = {}
    for number, operation in enumerate(job.operations):
        if not isinstance(operation, Map) or not operation.is_elementwise:
            continue
        for operand in operation.sources:
            readers = [at for at, made in enumerate(job.operations) if operand in made.sources]
            dies = operand not in pinned and readers == [number]
            if dies and operation.result in pinned:
                found[operand] = pinned[operation.result]
                break
    return found


def _inner(number: int) -> str:
    """The name of a segment's own memory; no tensor has it."""
    return f"\0{number}"

"""Cuts a network that does not fit into segments of layers, and these into tiles."""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from ..ir.operations import Convolution, HostOperation, Map, Operation, View
from .cost_estimate import Budget, cycles, demand, sliding_bytes, together, transferred
from .fused_layers import LONGEST, RUN_CYCLES, Part, Segment, choices
from .halo import Region, without_stride
from .place_sums import cut_places
from .resident_chain import ChainPlanner
from .spatial_tiles import cut, cut_sums
from .subprograms import Job, Tile, TileCompiler

_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2)
"""Shares of the memories that estimates may use, one after the other while they prove too low."""


_MEMORIES = ("activation_bytes", "weight_bytes", "parameter_words", "instruction_words")


def halves(configuration: Configuration, memories: Sequence[str] = _MEMORIES) -> Configuration:
    """The hardware with half of each memory: the other half is filled and emptied meanwhile.

    A memory that cannot be halved counts whole.
    """
    budget = configuration
    for name in memories:
        try:
            budget = dataclasses.replace(budget, **{name: getattr(budget, name) // 2})
        except ValueError:
            continue
    return budget


@dataclass(frozen=True, eq=False)
class Piece:
    """Jobs in their order, compiled: of a segment, or of a layer in boxes; or a host's layer."""

    tiles: tuple[Tile, ...] = ()
    host: int | None = None


_Key = tuple[int, int, bool]
"""A span of operations, and whether only ways for links of chains are wanted."""


@dataclass(frozen=True, eq=False)
class _Way:
    """Describes how some layers may be computed, and what that costs in cycles, transfers included.

    ``ordered``: the jobs' order is a part of it.
    """

    cost: int
    jobs: Callable[[], Iterable[Job]]
    compiler: TileCompiler
    ordered: bool = False


class Cutter:
    """Cuts a list of operations into pieces; see ``pieces``.

    Parameters
    ----------
    operations : sequence of Operation
        No aliases. Maps that gather are computed whole.
    outputs : set of str
        The network's.
    configuration : Configuration
    inspect : bool
        Every layer's result leaves the device.
    batch : int
        Images that share what is loaded.

    Members
    -------
    operations : list of Operation
        What is too large in every way becomes a host's.
    lost : set of str
        Nodes of these that had a function behind them, which the host would not compute.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        outputs: AbstractSet[str],
        configuration: Configuration,
        *,
        inspect: bool,
        batch: int = 1,
    ) -> None:
        self.operations = list(operations)
        self.lost = set[str]()
        self._outputs = outputs
        self._longest = 1 if inspect else LONGEST
        self._hardware, self._batch = configuration, batch
        self._compilers = [
            TileCompiler(halves(configuration)),
            TileCompiler(halves(configuration, _MEMORIES[1:])),
            TileCompiler(halves(configuration, (_MEMORIES[0], _MEMORIES[3]))),
            TileCompiler(configuration),
        ]
        self._readers: dict[str, list[int]] = {}
        for number, operation in enumerate(operations):
            for name in operation.node.inputs:
                self._readers.setdefault(name, []).append(number)
        # layers together whose weights take all of their memory are no link of a chain
        self._chainable = False
        self._found: dict[tuple[tuple[int, int], TileCompiler, float], list[_Way]] = {}
        self._untried: dict[_Key, Iterator[_Way]] = {}
        self._ways: dict[_Key, _Way | None] = {}
        self._compiled: dict[_Key, tuple[Tile, ...]] = {}

    def pieces(self) -> list[Piece]:
        """All pieces, in an order in which they can run."""
        plans = (False, True) if self._hardware.dram and self._batch == 1 else (False,)
        while True:
            before = list(self.operations)
            found = [self._pieces(chainable) for chainable in plans]
            # what one of the two plans leaves to the host is the host's in both
            if all(map(operator.is_, before, self.operations)):
                return min(found, key=lambda each: each[0])[1]

    def _pieces(self, chainable: bool) -> tuple[int, list[Piece]]:
        """The cycles of a plan, nearly, and its pieces; only of what may be a chain, or of all."""
        self._chainable = chainable
        while True:
            self._leave_to_host()
            plan = list(self._plan())
            # what proves too large is planned anew
            if all([self._compiles(span) for span in plan if span is not None]):
                break
        chained = self._chained(plan) if self._hardware.dram and self._batch == 1 else {}
        hosts = iter(
            number
            for number, operation in enumerate(self.operations)
            if isinstance(operation, HostOperation)
        )
        cost, pieces = 0, list[Piece]()
        for span in plan:
            if span is None:
                pieces.append(Piece(host=next(hosts)))
            elif span in chained:
                cost += self._cost_of_link(chained[span])
                pieces.append(Piece(chained[span]))
            else:
                way = self._way(span)
                assert way is not None
                cost += way.cost
                pieces.append(Piece(self._compiled[self._key(span)]))
        return cost, pieces

    def _cost_of_link(self, tiles: Sequence[Tile]) -> int:
        """Counts the cycles of a chain's segment: its own maps, and what else is moved."""
        hardware = self._hardware
        work = sum(RUN_CYCLES + tile.timeline.end for tile in tiles)
        units = sum(map(len, {tile.weights for tile in tiles})) // hardware.weight_unit_bytes
        moved = sum(transferred(tile.job, tile.job.operations, hardware) for tile in tiles)
        budget = self._budget(self._compilers[1], _SHARES[0])
        largest = max(len(tile.weights) for tile in tiles)
        return together(work, units * hardware.weight_word_bytes, moved, budget, largest)

    def _chained(
        self, plan: Sequence[tuple[int, int] | None]
    ) -> dict[tuple[int, int], tuple[Tile, ...]]:
        """The tiles of segments whose maps stay on the chip from one to the next."""
        found: dict[tuple[int, int], tuple[Tile, ...]] = {}
        at = 0
        while at < len(plan):
            end, tiles = at + 1, None
            while end < len(plan) and plan[end] is not None and plan[at] is not None:
                longer = self._chain([span for span in plan[at : end + 1] if span is not None])
                if longer is None:
                    break
                end, tiles = end + 1, longer
            for span, members in zip(plan[at:end], tiles or (), strict=False):
                assert span is not None
                found[span] = members
            at = end
        return found

    def _chain(self, spans: Sequence[tuple[int, int]]) -> list[tuple[Tile, ...]] | None:
        """The tiles of some segments as one chain; None if the memories have no room for it."""
        first, end = spans[0][0], spans[-1][1]
        segments = [self._segment(span) for span in spans]
        wanted = {
            name
            for name in (made.result for segment in segments for _, made in segment.parts)
            if name in self._outputs
            or any(not first <= reader < end for reader in self._readers.get(name, []))
        }
        compiler = self._compilers[1]
        planner = ChainPlanner(self._hardware, self._budget(compiler, _SHARES[1]))
        jobs = planner.jobs(segments, wanted)
        if jobs is None:
            return None
        try:
            return [tuple(map(compiler.compile, some)) for some in jobs]
        except CapacityError:
            return None

    def _leave_to_host(self) -> None:
        """Layers that do not fit even in parts."""
        for number, operation in enumerate(self.operations):
            on_host = isinstance(operation, HostOperation)
            if not on_host and self._way((number, number + 1)) is None:
                macs = operation.macs
                if isinstance(operation, Convolution) and operation.function is not None:
                    self.lost.add(operation.node.name)
                why = "not even a part of it fits the memories"
                if isinstance(operation, Map) and operation.gathers:
                    why = "the activation memory has no room for its copy"
                self.operations[number] = HostOperation(operation.node, why, macs)

    def _plan(self) -> Iterator[tuple[int, int] | None]:
        """Yields which operations are computed together; None for one of the host."""
        first = 0
        for on_host, members in itertools.groupby(
            self.operations, lambda operation: isinstance(operation, HostOperation)
        ):
            count = len(list(members))
            if on_host:
                yield from itertools.repeat(None, count)
            else:
                yield from self._cheapest(first, first + count)
            first += count

    def _cheapest(self, first: int, end: int) -> list[tuple[int, int]]:
        """The segments of consecutive operations of the device that cost least together."""
        totals, starts = [0], [first]
        for behind in range(first + 1, end + 1):
            options = []
            for start in range(behind - 1, max(first, behind - self._longest) - 1, -1):
                way = self._way((start, behind))
                # what does not fit will not with more layers
                if way is None:
                    break
                options.append((totals[start - first] + way.cost, start))
            total, start = min(options)
            totals.append(total)
            starts.append(start)
        spans = []
        while end > first:
            spans.append((starts[end - first], end))
            end = starts[end - first]
        return spans[::-1]

    def _compiles(self, span: tuple[int, int]) -> bool:
        """Compiles these operations as planned; if that fails, another way is next."""
        way, key = self._way(span), self._key(span)
        assert way is not None
        try:
            if key not in self._compiled:
                jobs = list(way.jobs())
                # the tiling of the first stripe is all stripes'
                way.compiler.compile(min(jobs, key=_origin))
                tiles = tuple(map(way.compiler.compile, jobs))
                self._compiled[key] = tiles if way.ordered else _by_weights(tiles)
        except CapacityError:
            self._ways[key] = next(self._untried[key], None)
            return False
        return True

    def _key(self, span: tuple[int, int]) -> _Key:
        """Names a span's ways; those of a layer alone do not depend on whether it may be a link."""
        first, end = span
        return first, end, self._chainable and end - first > 1

    def _way(self, span: tuple[int, int]) -> _Way | None:
        key = self._key(span)
        if key not in self._ways:
            self._untried[key] = self._all_ways(span)
            self._ways[key] = next(self._untried[key], None)
        return self._ways[key]

    def _all_ways(self, span: tuple[int, int]) -> Iterator[_Way]:
        """Ways to compute some operations.

        Over the link, those in half of all memories come first, and only single layers may take
        more. With DRAM the cheaper ones come first: where the DRAM is the bound, tiles may well
        take all of the activation memory.
        """
        segment = self._segment(span)
        alone = len(segment.parts) == 1
        in_halves, in_activations, in_weights, whole = self._compilers
        if self._hardware.dram:
            group = [in_halves, in_activations]
            if alone or not self._chainable:
                group.append(in_weights)
            # images of a batch share a load that nothing hides
            if alone or self._batch > 1:
                group.append(whole)
            groups = [group]
        else:
            groups = [[in_halves], [whole]] if alone else [[in_halves]]
        for group in groups:
            for share in _SHARES:
                found: list[_Way] = []
                for compiler in group:
                    key = span, compiler, share
                    # both plans have most of them
                    if key not in self._found:
                        budget = self._budget(compiler, share)
                        self._found[key] = list(self._ways_of(segment, budget, compiler))
                    found += self._found[key]
                if not found:
                    break
                yield from sorted(found, key=lambda way: way.cost)

    def _budget(self, compiler: TileCompiler, share: float) -> Budget:
        own, all_of_it = compiler.budget, self._hardware
        return Budget(
            own,
            share,
            whole_weights=own.weight_bytes == all_of_it.weight_bytes,
            whole_activations=own.activation_bytes == all_of_it.activation_bytes,
            images=self._batch,
            all_memories=all_of_it,
        )

    def _ways_of(self, segment: Segment, budget: Budget, compiler: TileCompiler) -> Iterator[_Way]:
        views = dict[str, View]()
        if len(segment.parts) == 1:
            segment, views = _skipping_none(segment)
        for choice in choices(segment, budget):
            jobs = functools.partial(segment.jobs, choice.grid, budget)
            yield _Way(choice.cost, _seeing(jobs, views), compiler)
        if len(segment.parts) == 1:
            for cutter in (cut, cut_sums, cut_places):
                jobs = cutter(segment.parts[0], budget)
                if jobs is not None:
                    way = self._in_boxes(segment.parts[0], jobs, budget, compiler)
                    yield dataclasses.replace(way, jobs=_seeing(way.jobs, views))

    def _segment(self, span: tuple[int, int]) -> Segment:
        parts: list[Part] = []
        for number in range(*span):
            operation = self.operations[number]
            assert isinstance(operation, Convolution | Map)
            parts.append((number, operation))
        outputs = [
            operation.result
            for _, operation in parts
            if operation.result in self._outputs
            or any(not span[0] <= at < span[1] for at in self._readers.get(operation.result, []))
        ]
        return Segment(tuple(parts), tuple(outputs or [parts[-1][1].result]))

    def _in_boxes(
        self, part: Part, jobs: Sequence[Job], budget: Budget, compiler: TileCompiler
    ) -> _Way:
        work, loaded, moved, largest, there = 0, 0, 0, 0, None
        for job in jobs:
            channels = job.regions[part[1].result].channels
            key = channels, job.regions[part[1].sources[0]].channels
            if key != there:
                needs = demand(job.operations, budget.hardware)
                loaded, largest = loaded + needs.loaded_bytes, max(largest, needs.weight_bytes)
            there = key
            moved += transferred(job, [part[1]], budget.hardware)
            work += RUN_CYCLES + sum(cycles(made, budget.hardware) for made in job.operations)
        moved -= _still_there(part[1].sources[0], jobs, budget) if budget.hardware.dram else 0
        cost = together(work, loaded, moved, budget, largest)
        return _Way(cost, lambda: jobs, compiler, ordered=True)


def _origin(job: Job) -> tuple[int, int, int]:
    """Returns where its last result begins."""
    return job.regions[job.operations[-1].result].origin


def _still_there(source: str, jobs: Sequence[Job], budget: Budget) -> int:
    """Bytes of an input that are on the chip from a job before, nearly; see ``kept_rows``."""
    saved, turn, before = 0, 0, None
    # what is in each of the places where tiles lie in turns
    slots: list[Region | None] = [None] if budget.whole_activations else [None, None]
    for job in jobs:
        wanted = job.regions[source]
        if slots[turn] != wanted:
            turn = (turn + 1) % len(slots)
        if slots[turn] == wanted:
            # in a batch, the other images come between
            saved += wanted.view.elements if budget.images == 1 else 0
        elif before is not None:
            # the mean of many
            saved += sliding_bytes(before, job, len(jobs), budget.whole) // len(jobs)
        slots[turn], before = wanted, job
    return saved


def _skipping_none(segment: Segment) -> tuple[Segment, dict[str, View]]:
    """A segment of one layer, which reads only the pixels that it needs; and for what shape it
    takes its input."""
    ((number, operation),) = segment.parts
    found = without_stride(operation) if isinstance(operation, Convolution) else None
    if found is None:
        return segment, {}
    plain, view = found
    return dataclasses.replace(segment, parts=((number, plain),)), {plain.source: view}


def _seeing(
    jobs: Callable[[], Iterable[Job]], views: Mapping[str, View]
) -> Callable[[], Iterable[Job]]:
    """The same jobs, which take some inputs for tensors of other shapes."""
    if not views:
        return jobs
    return lambda: (dataclasses.replace(job, views={**job.views, **views}) for job in jobs())


def _by_weights(tiles: Sequence[Tile]) -> tuple[Tile, ...]:
    """Those with equal constants one behind the other: tiles of other widths may have others."""
    alike: dict[tuple[bytes, bytes], list[Tile]] = {}
    for tile in tiles:
        alike.setdefault((tile.weights, tile.parameters), []).append(tile)
    return tuple(itertools.chain(*alike.values()))

"""Cuts a network that does not fit into segments of layers, and these into tiles."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from ..ir.operations import Convolution, HostOperation, Map, Operation
from .cost_estimate import Budget, cycles, demand, together, transferred
from .fused_layers import LONGEST, RUN_CYCLES, Part, Segment, choices
from .resident_chain import ChainPlanner
from .spatial_tiles import cut
from .subprograms import Job, Tile, TileCompiler

_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2)
"""Of the memories, that estimates are allowed, one after the other while they prove too low."""


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


@dataclass(frozen=True, eq=False)
class _Way:
    """How some layers may be computed, and what that costs in cycles, transfers included.

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
        self._outputs = outputs
        self._longest = 1 if inspect else LONGEST
        self._hardware, self._batch = configuration, batch
        self._compilers = [
            TileCompiler(halves(configuration)),
            TileCompiler(halves(configuration, _MEMORIES[1:])),
            TileCompiler(configuration),
        ]
        self._readers: dict[str, list[int]] = {}
        for number, operation in enumerate(operations):
            for name in operation.node.inputs:
                self._readers.setdefault(name, []).append(number)
        self._untried: dict[tuple[int, int], Iterator[_Way]] = {}
        self._ways: dict[tuple[int, int], _Way | None] = {}
        self._compiled: dict[tuple[int, int], tuple[Tile, ...]] = {}

    def pieces(self) -> list[Piece]:
        """All pieces, in an order in which they can run."""
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
        return [
            Piece(host=next(hosts))
            if span is None
            else Piece(chained.get(span, self._compiled[span]))
            for span in plan
        ]

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
                why = "not even a part of it fits the memories"
                if isinstance(operation, Map) and operation.gathers:
                    why = "the activation memory has no room for its copy"
                self.operations[number] = HostOperation(operation.node, why, macs)

    def _plan(self) -> Iterator[tuple[int, int] | None]:
        """Which operations are computed together; None for one of the host."""
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
        way = self._way(span)
        assert way is not None
        try:
            if span not in self._compiled:
                tiles = tuple(way.compiler.compile(job) for job in way.jobs())
                self._compiled[span] = tiles if way.ordered else _by_weights(tiles)
        except CapacityError:
            self._ways[span] = next(self._untried[span], None)
            return False
        return True

    def _way(self, span: tuple[int, int]) -> _Way | None:
        if span not in self._ways:
            self._untried[span] = self._all_ways(span)
            self._ways[span] = next(self._untried[span], None)
        return self._ways[span]

    def _all_ways(self, span: tuple[int, int]) -> Iterator[_Way]:
        """Ways to compute some operations.

        Over the link, those in half of all memories come first, and only single layers may take
        more. With DRAM the cheaper ones come first: where the DRAM is the bound, tiles may well
        take all of the activation memory.
        """
        segment = self._segment(span)
        alone = len(segment.parts) == 1
        in_halves, in_activations, whole = self._compilers
        if self._hardware.dram:
            # images of a batch share a load that nothing hides
            shared = alone or self._batch > 1
            groups = [[in_halves, in_activations, whole] if shared else [in_halves, in_activations]]
        else:
            groups = [[in_halves], [whole]] if alone else [[in_halves]]
        for group in groups:
            for share in _SHARES:
                found: list[_Way] = []
                for compiler in group:
                    found += self._ways_of(segment, self._budget(compiler, share), compiler)
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
        )

    def _ways_of(self, segment: Segment, budget: Budget, compiler: TileCompiler) -> Iterator[_Way]:
        for choice in choices(segment, budget):
            jobs = functools.partial(segment.jobs, choice.grid, budget)
            yield _Way(choice.cost, jobs, compiler)
        if len(segment.parts) == 1:
            way = self._in_boxes(segment.parts[0], budget, compiler)
            if way is not None:
                yield way

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

    def _in_boxes(self, part: Part, budget: Budget, compiler: TileCompiler) -> _Way | None:
        jobs = cut(part, budget)
        if jobs is None:
            return None
        work, loaded, moved, there = 0, 0, 0, None
        for job in jobs:
            channels = job.regions[part[1].result].channels
            key = channels, job.regions[part[1].sources[0]].channels
            if key != there:
                loaded += demand(job.operations, budget.hardware).loaded_bytes
            there = key
            moved += transferred(job)
            work += RUN_CYCLES + sum(cycles(made, budget.hardware) for made in job.operations)
        cost = together(work, loaded, moved, budget)
        return _Way(cost, lambda: jobs, compiler, ordered=True)


def _by_weights(tiles: Sequence[Tile]) -> tuple[Tile, ...]:
    """Those with equal constants one behind the other: tiles of other widths may have others."""
    alike: dict[tuple[bytes, bytes], list[Tile]] = {}
    for tile in tiles:
        alike.setdefault((tile.weights, tile.parameters), []).append(tile)
    return tuple(itertools.chain(*alike.values()))

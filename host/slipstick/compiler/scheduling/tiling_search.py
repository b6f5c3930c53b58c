"""Chooses how each group is tiled, by predicted cycles."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import CapacityError
from ..timing.compact_cycle_model import CompactCycleModel
from ..timing.cycle_model import Clock, CycleModel
from ..timing.timeline import Instruction, Timeline
from .groups import Group, Tiling

PRICES = (0, 4, 8, 24, 64)
"""Cycles that an instruction must save to be worth its room, where room is short."""

_SKIPPED_BANKS = (1, 2, 3)
"""Banks of the accumulators to skip between two groups, one number for each trial."""

_LONGER = 1.25
"""Times the capacity: a run that is longer in the midst of it will not fit in the end."""

_ROOMY = 24
"""Instructions left over where it is not."""


_ALIKE = 2
"""Tilings of one kind that are tried, where the best one of another size is known."""


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A run's instructions, and how each of its groups is tiled."""

    timeline: Timeline
    tilings: tuple[Tiling, ...]


class _Emissions:
    """Instructions of each group under each tiling, emitted once, and the work that they are."""

    def __init__(self, model: CycleModel | CompactCycleModel) -> None:
        self._model = model
        self._known: dict[tuple[int, Tiling], list[Instruction]] = {}
        self._works: dict[tuple[int, Tiling], tuple[list[int], list[int]]] = {}

    def get(self, group: Group, tiling: Tiling) -> list[Instruction]:
        key = (group.first, tiling)
        if key not in self._known:
            self._known[key] = group.emit(tiling)
        return self._known[key]

    def _work(self, group: Group, tiling: Tiling) -> tuple[list[int], list[int]]:
        key = (group.first, tiling)
        if key not in self._works:
            assert isinstance(self._model, CycleModel)
            units = ([instruction.fields] for instruction in self.get(group, tiling))
            self._works[key] = self._model.work_to_the_end(units)
        return self._works[key]

    def hopeless(
        self, group: Group, tiling: Tiling, following: Group | None, most: int, price: int
    ) -> Callable[[Timeline, int], bool] | None:
        """Tells whether a trial must end later than ``most``, as ``_choose`` counts, or may not."""
        if not isinstance(self._model, CycleModel):
            return None
        array, post = self._work(group, tiling)
        further = [0, 0]
        if following is not None:
            simple = Tiling(following.fewest_tiles())
            further = [work[0] for work in self._work(following, simple)]

        def asked(timeline: Timeline, number: int) -> bool:
            clock = timeline.clock
            assert isinstance(clock, Clock)
            end = clock.end_after(array[number] + further[0], post[number] + further[1])
            return end + price * len(timeline) > most

        return asked


def schedule_runs(
    runs: Sequence[Sequence[Group]],
    empty: Timeline,
    capacity: int,
    alike: Sequence[Tiling] | None = None,
    *,
    counts_all: bool = True,
) -> list[Scheduled]:
    """The instructions of every run.

    Group after group, each takes the tiling with which it and the group after it, simply tiled,
    end earliest: small tiles let the next layer begin while the last rows are drained, large ones
    hide the weights' loading and spare instructions.

    Parameters
    ----------
    runs : sequence of sequences of Group
    empty : Timeline
        The state at the start of a run.
    capacity : int
        Instructions that the memory holds, HALTs included.
    alike : sequence of Tiling, optional
        Of the groups of the only run: what was best for the same groups of another size. Only the
        tilings nearest to these are tried.
    counts_all : bool
        The error says how many instructions all runs need. Otherwise it comes as soon as there is
        no room: where many ways are tried, most of the time goes to those that do not fit.

    Raises
    ------
    CapacityError
        If even the simplest tilings need more.
    """
    emissions = _Emissions(empty.model)
    # behind the next groups some of it may become turns of a loop
    most = None if counts_all else int(_LONGER * capacity)
    plain = [_simplest(groups, empty, emissions, most) for groups in runs]
    needed = sum(len(timeline) for timeline, _ in plain)
    if needed > capacity:
        worst, count = max(
            (
                pair
                for groups, (_, counts) in zip(runs, plain, strict=True)
                for pair in zip(groups, counts, strict=True)
            ),
            key=lambda pair: pair[1],
        )
        raise CapacityError(
            f"the instruction memory must hold {needed} instructions, {count} of them for layer"
            f" {worst.name!r}, but has room for {capacity}"
        )
    best, best_end = [], None
    for price in PRICES:
        filled = _fill(runs, plain, empty, emissions, capacity - needed, price, alike)
        end = sum(run.timeline.end for run in filled)
        if best_end is None or end < best_end:
            best, best_end = filled, end
        # there was room enough for all that helps
        if not price and sum(len(run.timeline) for run in filled) <= capacity - _ROOMY:
            break
    return best


def _fill(
    runs: Sequence[Sequence[Group]],
    plain: Sequence[tuple[Timeline, list[int]]],
    empty: Timeline,
    emissions: _Emissions,
    spare: int,
    price: int,
    alike: Sequence[Tiling] | None,
) -> list[Scheduled]:
    """All runs, in ``spare`` instructions more than those of ``plain``."""
    filled = []
    for groups, (simplest, counts) in zip(runs, plain, strict=True):
        timeline, tilings = empty.copy(), []
        for number, group in enumerate(groups):
            following = groups[number + 1] if number + 1 < len(groups) else None
            most = len(simplest) + spare - sum(counts[number + 1 :])
            worth = group.tilings()
            if alike is not None:
                worth = _nearest(worth, alike[number])
            timeline, tiling = _choose(group, worth, timeline, following, emissions, most, price)
            tilings.append(tiling)
        # how much is merged depends on what lies before: what grew too long is done simply
        if len(timeline) > len(simplest) + spare:
            timeline = simplest
            tilings = [Tiling(group.fewest_tiles()) for group in groups]
        spare -= len(timeline) - len(simplest)
        filled.append(Scheduled(timeline, tuple(tilings)))
    return filled


def _nearest(tilings: Sequence[Tiling], other: Tiling) -> list[Tiling]:
    """The tilings that are most like another one: of its kind, and the simplest."""
    kind = other.channels_outside, other.early
    same = [tiling for tiling in tilings if (tiling.channels_outside, tiling.early) == kind]
    same.sort(key=lambda tiling: abs(tiling.row_tiles - other.row_tiles))
    return list(dict.fromkeys([*same[:_ALIKE], tilings[0]]))


def _ways(group: Group, tilings: Sequence[Tiling], repeats: bool) -> list[tuple[Tiling, bool]]:
    """Tilings, each with the waits that it needs, and with such that more of it are turns."""
    late = (False, True) if repeats and group.has_turns else (False,)
    return list(itertools.product(tilings, late))


def _simplest(
    groups: Sequence[Group], empty: Timeline, emissions: _Emissions, most: int | None
) -> tuple[Timeline, list[int]]:
    """A run in the fewest instructions, and how many of them are each group's.

    CapacityError as soon as there are more than ``most``.
    """
    timeline, counts = empty.copy(), []
    for group in groups:
        tried = []
        for tiling, late in _ways(group, [Tiling(group.fewest_tiles())], empty.repeats):
            trial = timeline.copy()
            trial.extend(emissions.get(group, tiling), late=late)
            tried.append(trial)
        best = min(tried, key=lambda trial: (len(trial), trial.end))
        counts.append(len(best) - len(timeline))
        timeline = best
        if most is not None and len(timeline) > most:
            raise CapacityError(
                f"layer {group.name!r}: the instruction memory must hold more than {most}"
                " instructions"
            )
    return timeline, counts


def _choose(
    group: Group,
    tilings: Sequence[Tiling],
    timeline: Timeline,
    following: Group | None,
    emissions: _Emissions,
    most: int,
    price: int,
) -> tuple[Timeline, Tiling]:
    """The run so far with a group more, in at most ``most`` instructions if that can be.

    Of the ways to do it, that with which it and the following group, done simply, end earliest, an
    instruction taken for so many cycles.
    """
    behind: list[Instruction] = []
    if following is not None:
        behind = emissions.get(following, Tiling(following.fewest_tiles()))
    best, best_key, best_way = timeline, None, None
    ways = [(*way, 0) for way in _ways(group, tilings, timeline.repeats)]
    while ways:
        for way in ways:
            tiling, late, skipped = way
            longer = timeline.copy()
            hopeless = None
            if best_key is not None and not best_key[0]:
                hopeless = emissions.hopeless(group, tiling, following, best_key[1], price)
            instructions = emissions.get(group, tiling)
            if not longer.extend(instructions, late=late, skipped=skipped, hopeless=hopeless):
                continue
            trial = longer.copy()
            trial.extend(behind)
            excess = max(len(longer) - most, 0)
            key = excess, trial.end + price * len(longer), len(longer)
            if best_key is None or key < best_key:
                best, best_key, best_way = longer, key, way
        # the best one of these with other banks: those of the group before may be in its way
        assert best_way is not None
        ways = [] if ways[-1][2] else [(*best_way[:2], skipped) for skipped in _SKIPPED_BANKS]
    assert best_way is not None
    return best, best_way[0]

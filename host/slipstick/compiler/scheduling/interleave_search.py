"""Chooses how the groups of a run are tiled to be interleaved, by predicted cycles."""

from collections.abc import Sequence

from ..timing.cycle_model import CycleModel
from ..timing.timeline import Timeline
from .groups import Group
from .interleave import DEEPEST, Interleaver, UnitSequence, UnitSequences
from .tiling_search import Scheduled

_WAYS = ((False, 64), (True, 0))
"""Ways: whether turns stay together, and cycles that the array may idle for a later group."""

_UNIFORM = (1, 2, 3, 4)
"""Tiles of rows, nearly, of every group, to begin with."""

_MOST_UNITS = 64
"""Most units of a group; more take long to try, and gain little."""

INTERLEAVING_EFFORT = 80_000
"""Instructions that are issued in trials of one way to interleave, about: a few seconds."""

_HOPELESS = 1.3
"""Times the cycles of the run without interleaving from which a way is not worth to be bettered."""

_FULL = 0.97
"""Share of the run without interleaving in which the array works, from which no way is tried."""

_EXCESS = 1000
"""Cycles that an instruction costs for which there is no room."""


class _Search:
    """The tilings of all groups, bettered group by group."""

    def __init__(
        self,
        groups: Sequence[Group],
        plain: Scheduled,
        capacity: int,
        *,
        joins: bool,
        patience: int,
        effort: int,
    ) -> None:
        model = plain.timeline.model
        assert isinstance(model, CycleModel)
        self._empty, self._capacity = Timeline(model), capacity
        self._plain_end, self._patience = plain.timeline.end, patience
        self._sequences = UnitSequences(model, joins=joins)
        self._costs: dict[tuple[object, ...], int] = {}
        self._least_costs: dict[tuple[object, ...], int] = {}
        self._plain = [
            self._sequences.get(group, tiling)
            for group, tiling in zip(groups, plain.tilings, strict=True)
        ]
        self._options = [self._worthwhile(group) for group in groups]
        self._effort = effort

    def _worthwhile(self, group: Group) -> list[UnitSequence]:
        found = [self._sequences.get(group, tiling) for tiling in group.tilings()]
        return [found[0], *(made for made in found[1:] if len(made.units) <= _MOST_UNITS)]

    def run(self) -> Timeline:
        """The best run that is found, from the tilings of the plain run, few tiles or many."""
        uniform = [self._uniform(tiles) for tiles in _UNIFORM]
        costs = [self._cost(self._start(), chosen) for chosen in uniform]
        found = []
        for chosen in (self._plain, uniform[0], uniform[costs.index(min(costs))]):
            before, cost = None, self._cost(self._start(), chosen)
            while chosen != before and cost < _HOPELESS * self._plain_end and self._effort > 0:
                before, chosen = chosen, self._sweep(chosen)
            found.append(chosen)
        best = min(found, key=lambda chosen: self._cost(self._start(), chosen))
        interleaver = self._begun(self._start(), best)
        interleaver.interleave()
        return interleaver.timeline

    def _uniform(self, tiles: int) -> list[UnitSequence]:
        return [
            min(options, key=lambda sequence: abs(sequence.key[1].row_tiles - tiles))
            for options in self._options
        ]

    def _start(self) -> Interleaver:
        return Interleaver(self._empty.copy(), self._sequences, self._patience)

    @staticmethod
    def _begun(state: Interleaver, sequences: Sequence[UnitSequence]) -> Interleaver:
        """A copy of a run, with sequences behind those that it has."""
        interleaver = state.copy()
        for sequence in sequences:
            interleaver.add(sequence)
        return interleaver

    def _cost(
        self, state: Interleaver, sequences: Sequence[UnitSequence], limit: int | None = None
    ) -> int:
        """The cost of a run that begins as ``state``; what is ``limit`` or more may be less exact.

        Effort is that of a whole trial, so that neither what is known nor a limit changes what is
        found.
        """
        interleaver = self._begun(state, sequences)
        self._effort -= interleaver.pending
        key = interleaver.keys
        known = self._costs.get(key)
        if known is not None:
            return known
        least = self._least_costs.get(key, 0)
        if limit is not None and least >= limit:
            return least
        if not interleaver.interleave(limit=limit):
            self._least_costs[key] = least = interleaver.least_end
            return least
        timeline = interleaver.timeline
        cost = timeline.end + _EXCESS * max(len(timeline) - self._capacity, 0)
        self._costs[key] = cost
        return cost

    def _sweep(self, chosen: Sequence[UnitSequence]) -> list[UnitSequence]:
        """Each group in turn takes the tiling with which the run ends earliest."""
        chosen, state = list(chosen), self._start()
        least = self._cost(state, chosen)
        for number, options in enumerate(self._options):
            for option in options if self._effort > 0 else ():
                cost = self._cost(state, [option, *chosen[number + 1 :]], least)
                if cost < least:
                    least, chosen[number] = cost, option
            state.add(chosen[number])
            # up to where the next group might have begun
            state.interleave(DEEPEST)
        return chosen


def interleave(
    groups: Sequence[Group],
    plain: Scheduled,
    capacity: int,
    effort: int = INTERLEAVING_EFFORT,
) -> Timeline:
    """Interleaves a run's groups, if that is predicted to be faster and there is room for it.

    Parameters
    ----------
    groups : sequence of Group
    plain : Scheduled
        The run, one group after the other.
    capacity : int
        Instructions that there is room for.
    effort : int
        Instructions issued in trials of each way, about.
    """
    if len(groups) == 1 or _array_work(plain.timeline) >= _FULL * plain.timeline.end:
        return plain.timeline
    found = [
        _Search(groups, plain, capacity, joins=joins, patience=patience, effort=effort).run()
        for joins, patience in _WAYS
    ]
    fitting = [timeline for timeline in found if len(timeline) <= capacity]
    return min([plain.timeline, *fitting], key=lambda timeline: timeline.end)


def _array_work(timeline: Timeline) -> int:
    """Cycles that the tiles of a run take of the array, pairs not counted."""
    model = timeline.model
    assert isinstance(model, CycleModel)
    fields = (issued.instruction.fields for issued in timeline.matrix)
    return sum(each["reduction_tiles"] * model.tile_period(each) for each in fields)

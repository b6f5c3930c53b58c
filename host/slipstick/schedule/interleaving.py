"""Chooses how the groups of a run are tiled to be woven, by predicted cycles."""

from collections.abc import Sequence

from .groups import Group
from .streams import Timeline
from .weaving import DEEPEST, Loom, Strand, Strands

_PATIENCES = (0, 64)
"""Cycles that the array may idle for a later group."""

_UNIFORM = (1, 2, 3, 4)
"""Tiles of rows, nearly, of every group, to begin with."""

_MOST_UNITS = 64
"""Of a group; more take long to try, and gain little."""

_EFFORT = 150_000
"""Instructions that are issued in trials, about: some seconds."""

_EXCESS = 1000
"""Cycles that an instruction costs for which there is no room."""


class _Search:
    """The tilings of all groups, bettered group by group."""

    def __init__(self, groups: Sequence[Group], empty: Timeline, capacity: int) -> None:
        self._empty, self._capacity, self._strands = empty, capacity, Strands()
        self._options = [self._worthwhile(group) for group in groups]
        self._effort = _EFFORT

    def _worthwhile(self, group: Group) -> list[Strand]:
        found = [self._strands.get(group, tiling) for tiling in group.tilings()]
        return [found[0], *(made for made in found[1:] if len(made.units) <= _MOST_UNITS)]

    def run(self, patience: int) -> Timeline:
        """The best run that is found with some patience."""
        chosen = min(
            (self._uniform(tiles) for tiles in _UNIFORM),
            key=lambda chosen: self._cost(self._start(patience), chosen),
        )
        effort, before = self._effort // 2, None
        while chosen != before and self._effort > effort:
            before, chosen = chosen, self._sweep(chosen, patience)
        return self._woven(self._start(patience), chosen).timeline

    def _uniform(self, tiles: int) -> list[Strand]:
        return [
            min(options, key=lambda strand: abs(strand.key[1].row_tiles - tiles))
            for options in self._options
        ]

    def _start(self, patience: int) -> Loom:
        return Loom(self._empty.copy(), self._strands, patience)

    def _woven(self, state: Loom, strands: Sequence[Strand]) -> Loom:
        loom = state.copy()
        for strand in strands:
            loom.add(strand)
        loom.weave()
        return loom

    def _cost(self, state: Loom, strands: Sequence[Strand]) -> int:
        timeline = self._woven(state, strands).timeline
        self._effort -= len(timeline.matrix) + len(timeline.post)
        self._effort += len(state.timeline.matrix) + len(state.timeline.post)
        return timeline.end + _EXCESS * max(len(timeline) - self._capacity, 0)

    def _sweep(self, chosen: Sequence[Strand], patience: int) -> list[Strand]:
        """Each group in turn takes the tiling with which the run ends earliest."""
        chosen, state = list(chosen), self._start(patience)
        least = self._cost(state, chosen)
        for number, options in enumerate(self._options):
            for option in options:
                cost = self._cost(state, [option, *chosen[number + 1 :]])
                if cost < least:
                    least, chosen[number] = cost, option
            state.add(chosen[number])
            # up to where the next group might have begun
            state.weave(DEEPEST)
        return chosen


def interleave(groups: Sequence[Group], plain: Timeline, capacity: int) -> Timeline:
    """A run with its groups woven, if that is predicted to be faster and there is room for it.

    Parameters
    ----------
    groups : sequence of Group
    plain : Timeline
        The run, one group after the other.
    capacity : int
        Instructions that there is room for.
    """
    if len(groups) == 1:
        return plain
    search = _Search(groups, Timeline(plain.model), capacity)
    found = [search.run(patience) for patience in _PATIENCES]
    fitting = [timeline for timeline in found if len(timeline) <= capacity]
    return min([plain, *fitting], key=lambda timeline: timeline.end)

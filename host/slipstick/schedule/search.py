"""Chooses how each group is tiled, by predicted cycles."""

from collections.abc import Sequence

from ..errors import CapacityError
from .groups import Group, Tiling
from .streams import Instruction, Timeline


class _Emissions:
    """Instructions of each group under each tiling, emitted once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Tiling], list[Instruction]] = {}

    def get(self, group: Group, tiling: Tiling) -> list[Instruction]:
        key = (group.first, tiling)
        if key not in self._known:
            self._known[key] = group.emit(tiling)
        return self._known[key]


def schedule_runs(
    runs: Sequence[Sequence[Group]], empty: Timeline, capacity: int
) -> list[Timeline]:
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

    Raises
    ------
    CapacityError
        If even the simplest tilings need more.
    """
    emissions = _Emissions()
    simplest = [
        [emissions.get(group, Tiling(group.fewest_tiles())) for group in run] for run in runs
    ]
    needed = sum(len(group) for run in simplest for group in run) + 2 * len(runs)
    if needed > capacity:
        counts = [
            (len(plain), group)
            for groups, plains in zip(runs, simplest, strict=True)
            for group, plain in zip(groups, plains, strict=True)
        ]
        count, worst = max(counts, key=lambda item: item[0])
        raise CapacityError(
            f"the instruction memory must hold {needed} instructions, {count} of them for layer"
            f" {worst.name!r}, but has room for {capacity}"
        )
    spare = capacity - needed
    timelines = []
    for run, plain in zip(runs, simplest, strict=True):
        timeline = empty.copy()
        for number, group in enumerate(run):
            following = plain[number + 1] if number + 1 < len(run) else []
            chosen = _choose(group, timeline, following, emissions, len(plain[number]) + spare)
            spare -= len(chosen) - len(plain[number])
            timeline.extend(chosen)
        timelines.append(timeline)
    return timelines


def _choose(
    group: Group,
    timeline: Timeline,
    following: list[Instruction],
    emissions: _Emissions,
    most: int,
) -> list[Instruction]:
    """A group's instructions, at most ``most``, with which it and the following end earliest."""
    best, best_end = emissions.get(group, Tiling(group.fewest_tiles())), None
    for tiling in group.tilings():
        instructions = emissions.get(group, tiling)
        if len(instructions) > most:
            continue
        trial = timeline.copy()
        trial.extend(instructions)
        trial.extend(following)
        if best_end is None or (trial.end, len(instructions)) < best_end:
            best, best_end = instructions, (trial.end, len(instructions))
    return best

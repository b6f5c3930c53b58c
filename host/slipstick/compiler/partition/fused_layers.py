"""Layers that are computed together, stripe by stripe of rows, so that only their ends travel."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ir.operations import Convolution, Map
from ..scheduling.groups import split
from .cost_estimate import LINK_CYCLES_PER_BYTE, Budget, cost, demand, peak_bytes
from .halo import Region, gathered, needed, restrict
from .subprograms import Job

LONGEST = 16
"""Layers of a segment, at most."""

Part = tuple[int, Convolution | Map]
"""An operation, and which of the network's it is."""


def make_job(parts: Sequence[Part], outputs: Mapping[str, Region]) -> Job:
    """The job that makes these boxes of the outputs: each operation makes what is needed of it."""
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
    restricted = tuple(
        restrict(operation, regions[operation.result], regions) for _, operation in parts
    )
    return Job(restricted, tuple(number for number, _ in parts), regions, outputs)


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

    def most_stripes(self) -> int:
        """As many as the lowest of its outputs has rows; one where a map gathers."""
        if any(isinstance(made, Map) and made.gathers for _, made in self.parts):
            return 1
        return min(operation.output.height for operation in self._ends())

    def _ends(self) -> list[Convolution | Map]:
        return [operation for _, operation in self.parts if operation.result in self.outputs]

    def stripe(self, number: int, count: int) -> Job:
        """One of ``count`` jobs, which makes that stripe of rows of each output."""
        outputs = {}
        for operation in self._ends():
            view = operation.output
            rows = split(view.height, count)[number]
            outputs[operation.result] = Region(rows, (0, view.width), (0, view.channels))
        return make_job(self.parts, outputs)

    def stripes(self, count: int) -> Iterator[Job]:
        """Jobs that make all of the outputs."""
        return (self.stripe(number, count) for number in range(count))


@dataclass(frozen=True)
class Choice:
    """In how many stripes a segment is computed, and its cost in cycles, transfers included."""

    stripes: int
    cost: int


def choose_stripes(segment: Segment, budget: Budget) -> Choice | None:
    """The fewest stripes that fit; None if none does.

    Fewer stripes compute fewer rows twice.
    """
    needs = demand([operation for _, operation in segment.parts], budget.hardware)
    if not needs.fits(budget):
        return None
    most = segment.most_stripes()
    count = 1
    while count <= most:
        # the first are the highest, those inside need rows above and below
        stripes = [segment.stripe(number, count) for number in {0, min(1, count - 1), count // 2}]
        peak = max(peak_bytes(stripe, budget.hardware) for stripe in stripes)
        if peak <= budget.activation_bytes:
            break
        count += max(1, count // 4)
    else:
        return None
    total = cost(segment.stripe(0, count), budget.hardware)
    if count > 1:
        total += cost(segment.stripe(count - 1, count), budget.hardware)
        total += (count - 2) * cost(segment.stripe(count // 2, count), budget.hardware)
    return Choice(count, total + LINK_CYCLES_PER_BYTE * needs.loaded_bytes)

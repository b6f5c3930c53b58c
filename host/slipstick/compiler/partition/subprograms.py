"""One run's worth of work on boxes of activations, compiled as if nothing else were on the chip."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from ...errors import CapacityError
from ...program.steps import Placement
from ..ir.operations import Convolution, Map, View
from ..ir.requantization import rounding_runs
from ..mapping.activation_layout import Buffer, assign_pitches, make_buffers
from ..memory.constants import Images
from ..memory.liveness import Arrangement, Arranger
from ..memory.planner import PlanError
from ..scheduling.groups import Tiling
from ..scheduling.runs import make_groups
from ..scheduling.tiling_search import schedule_runs
from ..timing.cycle_models import cycle_model
from ..timing.timeline import Timeline
from .halo import Region


@dataclass(frozen=True, eq=False)
class Job:
    """Describes what one run computes.

    Parameters
    ----------
    operations : tuple of Convolution or Map
        Restricted to their boxes, in an order in which they can run.
    numbers : tuple of int
        Which of the network's operations they are.
    regions : mapping of Region by tensor
        The box of each tensor that is on the device meanwhile.
    owned : mapping of Region by tensor
        Of the results that leave the device, the box that no other run makes.
    views : mapping of View by tensor
        The whole of an input, where the job takes it for another shape than the network does.
    kept : set of str
        Inputs that the next job reads as well: they are not overwritten.
    pinned : mapping of Placement by tensor
        Where a box must lie; what else the job needs lies in ``room`` bytes from ``base`` on.
    base : int
    room : int, optional
    resident : set of str
        Inputs that are there from jobs before.
    goes_on : bool
        The next job needs what this one leaves on the device.
    """

    operations: tuple[Convolution | Map, ...]
    numbers: tuple[int, ...]
    regions: Mapping[str, Region]
    owned: Mapping[str, Region]
    views: Mapping[str, View] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    pinned: Mapping[str, Placement] = field(default_factory=dict)
    base: int = 0
    room: int | None = None
    resident: frozenset[str] = frozenset()
    goes_on: bool = False

    @property
    def inputs(self) -> list[str]:
        """The tensors that come from the host."""
        made = {operation.result for operation in self.operations} | self.resident
        return [name for name in self.regions if name not in made]


@dataclass(frozen=True, eq=False)
class Tile:
    """A compiled job, all of whose addresses count from 0.

    Parameters
    ----------
    job : Job
    timeline : Timeline
    places : mapping of Placement by tensor
    activation_bytes : int
        From address 0.
    weights, parameters : bytes
        What it needs there.
    """

    job: Job
    timeline: Timeline
    places: Mapping[str, Placement]
    activation_bytes: int
    weights: bytes
    parameters: bytes


@dataclass(frozen=True, eq=False)
class _Plan:
    """Holds what jobs of one shape have in common."""

    buffers: Mapping[str, Buffer]
    arrangement: Arrangement
    timeline: Timeline | None = None


class TileCompiler:
    """Compiles jobs; those that differ in weights only share their instructions.

    Parameters
    ----------
    budget : Configuration
        The hardware, with as much of its memories as a job may take.
    """

    def __init__(self, budget: Configuration) -> None:
        self.budget = budget
        self._empty = Timeline(cycle_model(budget))
        self._plans: dict[Any, _Plan] = {}
        # many ways to cut a segment begin with the same job
        self._failed: dict[Any, CapacityError] = {}
        self._tilings: dict[tuple[int, ...], tuple[Tiling, ...]] = {}

    def compile(self, job: Job) -> Tile:
        """The tile of a job; CapacityError if a memory is too small for it."""
        key = _shape(job)
        if key in self._failed:
            raise self._failed[key].with_traceback(None)
        try:
            return self._compile(job, key)
        except CapacityError as error:
            self._failed[key] = error
            raise

    def _compile(self, job: Job, key: Any) -> Tile:
        plan = self._plans.get(key) or self._arrange(job)
        images = Images(self.budget, shares=False)
        runs = make_groups(job.operations, plan.buffers, plan.arrangement, images, self.budget)
        data = {Space(image.space): image.data for image in images.all()}
        if plan.timeline is None:
            capacity = self.budget.instructions
            alike = self._tilings.get(job.numbers)
            (groups,) = runs.values()
            # maps may be fused in one size and not in another
            if alike is not None and len(alike) != len(groups):
                alike = None
            (scheduled,) = schedule_runs([groups], self._empty, capacity, alike, counts_all=False)
            self._tilings.setdefault(job.numbers, scheduled.tilings)
            plan = _Plan(plan.buffers, plan.arrangement, scheduled.timeline)
            self._plans[key] = plan
        assert plan.timeline is not None
        places = plan.arrangement.places
        return Tile(
            job,
            plan.timeline,
            places,
            max(place.reach if name in job.pinned else place.end for name, place in places.items()),
            data.get(Space.WEIGHTS, b""),
            data.get(Space.PARAMETERS, b""),
        )

    def _arrange(self, job: Job) -> _Plan:
        views = {name: region.view for name, region in job.regions.items()}
        by_device = {operation.result for operation in job.operations}
        buffers = make_buffers(job.operations, views, by_device)
        lasting = {*job.owned, *job.kept}
        # what the DMA moves lies close
        inside = by_device - lasting - job.pinned.keys() if self.budget.dram else set[str]()
        # where room is short, the small ones first: beside them a STORE waits least
        sizes = {name: buffers[name].view.pixels * buffers[name].view.channels for name in inside}
        fewer = [inside - {name} for name in sorted(inside, key=lambda name: (sizes[name], name))]
        none = set[str]()
        tries = [(inside, True), *((some, True) for some in fewer), (none, True), (inside, False)]
        failure = None
        for turning, fuse in (*tries, (none, False)):
            assign_pitches(job.operations, buffers, self.budget, pinned=job.pinned, turning=turning)
            try:
                arranger = Arranger(
                    lasting,
                    job.operations,
                    buffers,
                    fuse=fuse,
                    inspect=False,
                    pinned=job.pinned,
                    base=job.base,
                    room=job.room,
                )
                return _Plan(buffers, arranger.arrange(self.budget))
            except PlanError as error:
                failure = error
        assert failure is not None
        raise failure


def _shape(job: Job) -> Any:
    """All of a job but its weights, tables and parameters."""
    return (
        tuple(_operation_shape(operation) for operation in job.operations),
        tuple((name, region.view) for name, region in job.regions.items()),
        tuple(job.owned),
        job.kept,
        tuple(job.pinned.items()),
        (job.base, job.room),
    )


def _operation_shape(operation: Convolution | Map) -> Any:
    common = (operation.sources, operation.result, operation.output)
    if isinstance(operation, Map):
        windows = tuple(
            (w.rows, w.columns, w.origin, w.stride, w.taps, w.step, _finish(w.requantization))
            + (w.source, w.channels, w.origin_channel)
            for w in operation.windows
        )
        looked_up = operation.looked_up, operation.shifts, operation.gathers, operation.multiplies
        return (*common, windows, looked_up, operation.take_maximum)
    values = operation.requantization
    runs = rounding_runs(values, operation.output.channels, 1)
    return (
        *common,
        operation.input,
        operation.function is None,
        (operation.kernel, operation.stride, operation.dilation, operation.padding),
        (operation.groups, operation.input_zero_point),
        (operation.accumulates, operation.drains),
        (_finish(values)[1:], None if runs is None else tuple(runs)),
    )


def _finish(values: Any) -> tuple[int, ...]:
    clamp = values.minimum, values.maximum
    return int(values.rounding[0]), values.zero_point, *clamp, int(values.coded)

"""Compiles a network that is whole on the chip, but for some nodes on the host."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from slipstick_rtl.config import Configuration

from ..graph import Graph
from ..program import Program
from ..program.alternate import Alternate, moved_tensors
from ..program.steps import Image
from .codegen.assemble import Assembler
from .ir.operations import Convolution, Operation
from .make_program import make_program
from .mapping.activation_layout import Buffer
from .memory.constants import Images
from .memory.liveness import Arrangement
from .memory.release import Early, find_releases
from .memory.second_place import Doubled, DoubleError, double
from .planning import Plan, make_halved_plans, make_plan
from .scheduling.groups import Group
from .scheduling.interleave_search import interleave
from .scheduling.runs import make_groups
from .scheduling.tiling_search import Scheduled, schedule_runs
from .timing.cycle_models import cycle_model
from .timing.timeline import Timeline

_LOGGER = logging.getLogger(__name__)

_EARLY_COST = 1.05
"""Cycles of a run, at most, for each of the shortest one, where the next input can come sooner."""


class Run(NamedTuple):
    """The groups of a run, and their instructions."""

    groups: Sequence[Group]
    scheduled: Scheduled


def compile_whole(
    graph: Graph,
    configuration: Configuration,
    inspect: bool,
    effort: int,
    *,
    double_buffer: bool = True,
    on_host: frozenset[str] = frozenset(),
    in_ninth: frozenset[str] = frozenset(),
) -> Program:
    """Compiles a network for memories that hold all of it at once.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    inspect, effort, double_buffer
        As of ``compile_graph``.
    on_host : frozenset of str
        Nodes that the host runs.
    in_ninth : frozenset of str
        Layers whose weights lie in the weight memory's ninth bits.

    Raises
    ------
    CapacityError
        If it does not fit.
    """
    plan = make_plan(graph, configuration, inspect, on_host)
    halved = [] if inspect else make_halved_plans(graph, configuration, on_host)
    scheduled = [_schedule(each, configuration, in_ninth) for each in (plan, *halved)]
    (operations, buffers, arrangement), loaded, plain = min(
        scheduled, key=lambda found: sum(run.scheduled.timeline.end for run in found[2].values())
    )
    may_double = double_buffer and not inspect and not graph.variables
    may_double = may_double and _is_simple(arrangement, plain)
    streams = _streams(plain, configuration, effort, may_double)
    doubled = early = None
    if may_double:
        doubled = _doubled(operations, buffers, arrangement, streams, configuration)
    if may_double and doubled is None and not configuration.traits.shares_memory:
        early = _early(arrangement, streams, configuration)
        if early.end > _cycles(streams.values()):
            other = make_plan(graph, configuration, inspect, on_host, returning=True)
            other, others_loads, others_runs = _schedule(other, configuration, in_ninth)
            others = _streams(others_runs, configuration, effort, False)
            sooner = _early(other.arrangement, others, configuration)
            dear = _cycles(others.values()) > _EARLY_COST * _cycles(streams.values())
            if not dear and _period(others, sooner) < _period(streams, early):
                (operations, buffers, arrangement), loaded = other, others_loads
                streams, early = others, sooner
    if doubled is None:
        assembler = Assembler(operations, arrangement, streams)
    else:
        arrangement.places.update(doubled.places[0])
        first, second = doubled.timelines
        assembler = Assembler(operations, arrangement, dict.fromkeys(streams, first), second)
    steps, alternate = assembler.steps(), None
    if doubled is not None and assembler.second_pcs is not None:
        placements = {name: doubled.places[1][name] for name in moved_tensors(steps)}
        alternate = Alternate(placements=placements, pcs=assembler.second_pcs)
    halved = {made.result for made in operations if isinstance(made, Convolution) and made.apart}
    return make_program(
        graph,
        configuration,
        operations,
        {name: place for name, place in arrangement.places.items() if name not in halved},
        images=(*assembler.images, *loaded),
        steps=steps,
        layers=assembler.layers(),
        kept=arrangement.kept,
        alternate=alternate,
        releases=early.releases if early else (),
    )


def _early(
    arrangement: Arrangement, streams: Mapping[int, Timeline], configuration: Configuration
) -> Early:
    """Finds when on the only run's inputs may be written over."""
    ((run, timeline),) = streams.items()
    places = arrangement.places
    uploaded = [(name, places[name]) for name in arrangement.uploads.get(run, ())]
    downloaded = [places[name] for name in arrangement.downloads.get(run, ())]
    return find_releases(uploaded, downloaded, timeline, configuration)


def _period(streams: Mapping[int, Timeline], early: Early) -> int:
    """Cycles per image of a batch that comes a byte per cycle."""
    return max(_cycles(streams.values()), early.end)


def _is_simple(arrangement: Arrangement, runs: Mapping[int, Run]) -> bool:
    """Tells whether there is one run, and all transfers belong to it.

    Aliases behind a host operation may be downloaded after it.
    """
    both = (*arrangement.uploads.items(), *arrangement.downloads.items())
    return len(runs) == 1 and {run for run, names in both if names} <= set(runs)


def _doubled(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    streams: Mapping[int, Timeline],
    configuration: Configuration,
) -> Doubled | None:
    """Two places for the only run's inputs and outputs, if the memories have room for them."""
    (timeline,) = streams.values()
    try:
        return double(operations, buffers, arrangement, timeline, configuration)
    except DoubleError as error:
        _LOGGER.info("no second place: %s", error)
        return None


def _schedule(
    plan: Plan, configuration: Configuration, in_ninth: frozenset[str]
) -> tuple[Plan, tuple[Image, ...], dict[int, Run]]:
    """The plan, with all that is loaded for it, and the instructions of its runs."""
    images = Images(configuration, in_ninth=in_ninth)
    runs = make_groups(*plan, images, configuration)
    loaded = images.all()
    model = cycle_model(configuration)
    numbers = sorted(runs)
    scheduled = schedule_runs(
        [runs[number] for number in numbers], Timeline(model), configuration.instructions
    )
    made = map(Run, (runs[number] for number in numbers), scheduled)
    return plan, tuple(loaded), dict(zip(numbers, made, strict=True))


def _streams(
    runs: Mapping[int, Run], configuration: Configuration, effort: int, may_double: bool
) -> dict[int, Timeline]:
    """The instructions of all runs; in half the memory where two copies are not slower for it."""
    if not configuration.traits.overlaps_streams:
        return {number: run.scheduled.timeline for number, run in runs.items()}
    whole, half = configuration.instructions, configuration.instructions // 2
    streams = _interleaved(runs, whole, effort)
    if not may_double or _count(streams.values()) <= half:
        return streams
    if _count(run.scheduled.timeline for run in runs.values()) > half:
        return streams
    short = _interleaved(runs, half, effort)
    return short if _cycles(short.values()) <= _cycles(streams.values()) else streams


def _count(timelines: Iterable[Timeline]) -> int:
    return sum(map(len, timelines))


def _cycles(timelines: Iterable[Timeline]) -> int:
    return sum(timeline.end for timeline in timelines)


def _interleaved(runs: Mapping[int, Run], room: int, effort: int) -> dict[int, Timeline]:
    """The instructions of all runs, interleaved where that helps and there is room for it."""
    spare = room - _count(run.scheduled.timeline for run in runs.values())
    streams = {}
    for number, (groups, scheduled) in runs.items():
        length = len(scheduled.timeline)
        streams[number] = interleave(groups, scheduled, length + spare, effort)
        spare -= len(streams[number]) - length
    return streams

"""The compiler: a graph and a configuration make a program."""

import itertools
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from slipstick_rtl.config import Configuration

from ..errors import CapacityError
from ..graph import Graph, Tensor
from ..passes import optimize
from ..program import Program
from ..program.alternate import Alternate, moved_tensors
from ..program.release import Release
from ..program.steps import Image, LayerRecord, Placement, Step, TensorDescription
from .codegen.assemble import Assembler, layer_record
from .ir.operations import Convolution, HostOperation, Map, Operation
from .lower.select import require_tensors, select
from .mapping.activation_layout import Buffer, assign_pitches, make_buffers
from .mapping.reduction import channel_tiles
from .memory.constants import Images
from .memory.kept_variables import Pair, staying
from .memory.liveness import Arrangement, Arranger
from .memory.planner import PlanError
from .memory.release import Early, find_releases
from .memory.second_place import Doubled, DoubleError, double
from .partition.offload import layers_to_offload
from .partition.partitioner import Cutter
from .partition.streaming import Streamer
from .scheduling.groups import Group
from .scheduling.interleave_search import INTERLEAVING_EFFORT, interleave
from .scheduling.runs import make_groups
from .scheduling.tiling_search import Scheduled, schedule_runs
from .timing.cycle_models import cycle_model
from .timing.timeline import Timeline
from .transform.fold_width import fold
from .transform.split_depthwise import halve

_LOGGER = logging.getLogger(__name__)

_HOPELESS = 1.1
"""Bytes of weights, for each byte of memory, that are too many even without the smallest layers."""

_EARLY_COST = 1.05
"""Cycles of a run, at most, for each of the shortest one, where the next input can come sooner."""

_MOST_TRAILING = 16
"""Tiles of rows beyond the fewest, at most, of a convolution that writes over its input."""


class Run(NamedTuple):
    """The groups of a run, and their instructions."""

    groups: Sequence[Group]
    scheduled: Scheduled


class Plan(NamedTuple):
    """What runs where, and where its tensors lie."""

    operations: Sequence[Operation]
    buffers: dict[str, Buffer]
    arrangement: Arrangement


def compile_graph(
    graph: Graph,
    configuration: Configuration,
    *,
    inspect: bool = False,
    cut: bool = True,
    effort: int = INTERLEAVING_EFFORT,
    double_buffer: bool = True,
    batch: int = 1,
) -> Program:
    """Compiles a network for one piece of hardware.

    What does not fit it at once is cut, and streamed; what does not fit in parts runs on the host.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    inspect : bool
        For verification: every group of layers is a run of its own, nothing is overwritten in
        place, and the output of every layer on the device is downloaded after its run.
    cut : bool
        False: what does not fit at once is refused instead.
    effort : int
        Instructions issued in trials of each way to interleave layers. Less compiles faster, to
        programs that may take more cycles.
    double_buffer : bool
        Inputs and outputs get two places each if the memories have room for them; see
        ``Alternate``. False: one place.
    batch : int
        Of a network that is streamed from DRAM: so many images share what is loaded, and are
        computed together.

    Raises
    ------
    ModelError
        If the graph contradicts itself.
    UnsupportedError
        If its semantics are not the device's.
    CapacityError
        If it does not fit at once, and is not to be cut.
    """
    require_tensors(graph)
    graph = optimize(graph)

    def whole(**way: frozenset[str]) -> Program:
        return _compile_whole(
            graph, configuration, inspect, effort, double_buffer=double_buffer, **way
        )

    if not cut:
        return whole()
    if not _is_hopeless(graph, configuration):
        try:
            return whole()
        except CapacityError:
            small = layers_to_offload(select(graph, configuration)[0], configuration)
        ways = [{"in_ninth": small}] if configuration.ninth_bits else []
        for way in [*ways, {"on_host": small}] if small else []:
            try:
                return whole(**way)
            except CapacityError:
                continue
    return _compile_cut(graph, configuration, inspect, batch if configuration.dram else 1)


def _is_hopeless(graph: Graph, configuration: Configuration) -> bool:
    """Whether the weights cannot fit at once by far: nothing need be tried then."""
    weights = {
        node.inputs[1]
        for node in graph.nodes
        if node.operator in ("conv2d", "depthwise_conv2d", "fully_connected")
    }
    size = sum(math.prod(graph.tensors[name].shape) for name in weights)
    return size > _HOPELESS * configuration.weight_bytes


def _compile_whole(
    graph: Graph,
    configuration: Configuration,
    inspect: bool,
    effort: int,
    *,
    double_buffer: bool = True,
    on_host: frozenset[str] = frozenset(),
    in_ninth: frozenset[str] = frozenset(),
) -> Program:
    """All on the chip at once, but for some nodes; some have their weights in ninth bits."""
    plan = _plan(graph, configuration, inspect, on_host)
    halved = [] if inspect else _plan_halved(graph, configuration, on_host)
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
            other = _plan(graph, configuration, inspect, on_host, returning=True)
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
    return _program(
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
    """From when on the only run's inputs may be written over."""
    ((run, timeline),) = streams.items()
    places = arrangement.places
    uploaded = [(name, places[name]) for name in arrangement.uploads.get(run, ())]
    downloaded = [places[name] for name in arrangement.downloads.get(run, ())]
    return find_releases(uploaded, downloaded, timeline, configuration)


def _period(streams: Mapping[int, Timeline], early: Early) -> int:
    """Cycles per image of a batch that comes a byte per cycle."""
    return max(_cycles(streams.values()), early.end)


def _is_simple(arrangement: Arrangement, runs: Mapping[int, Run]) -> bool:
    """Whether there is one run, and all transfers belong to it: aliases behind a host operation may
    be downloaded after it."""
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


def _compile_cut(graph: Graph, configuration: Configuration, inspect: bool, batch: int) -> Program:
    """In segments, stripes and boxes, with what they need streamed from the host."""
    selected, views = select(graph, configuration, cut=True)
    cutter = Cutter(selected, set(graph.results), configuration, inspect=inspect, batch=batch)
    pieces = cutter.pieces()
    streamed = Streamer(pieces, cutter.operations, views.known, configuration, batch).stream()
    layers = tuple(
        layer_record(operation, streamed.cycles.get(number, 0))
        for number, operation in enumerate(cutter.operations)
    )
    return _program(
        graph,
        configuration,
        cutter.operations,
        {},
        images=streamed.images,
        loads=streamed.loads,
        steps=streamed.steps,
        units=streamed.units,
        layers=layers,
        batch=batch,
    )


def _program(
    graph: Graph,
    configuration: Configuration,
    operations: Sequence[Operation],
    places: Mapping[str, Placement],
    *,
    images: tuple[Image, ...],
    steps: tuple[Step, ...],
    layers: tuple[LayerRecord, ...],
    loads: tuple[Image, ...] = (),
    units: tuple[tuple[Step, ...], ...] = (),
    kept: Collection[str] = (),
    alternate: Alternate | None = None,
    releases: tuple[Release, ...] = (),
    batch: int = 1,
) -> Program:
    return Program(
        name=graph.name,
        semantics=graph.semantics,
        configuration=configuration.to_dict(),
        fingerprint=configuration.fingerprint,
        tensors=_describe(graph, places),
        inputs=graph.inputs,
        outputs=graph.outputs,
        images=images,
        loads=loads,
        steps=steps,
        units=units,
        constants=_constants(graph, operations),
        layers=layers,
        variables=graph.variables,
        resident=tuple(each.source for each in graph.variables if each.source in kept),
        alternate=alternate,
        releases=releases,
        batch=batch,
    )


def _plan(
    graph: Graph,
    configuration: Configuration,
    inspect: bool,
    on_host: frozenset[str],
    *,
    uncopied: frozenset[str] = frozenset(),
    returning: bool = False,
) -> Plan:
    """What runs where; copies of activations on the device but, if memory is short, the largest.

    ``returning``: as of ``Arranger``.
    """
    selected, views = select(graph, configuration, uncopied=uncopied, on_host=on_host)
    operations = fold(selected, configuration)
    pairs = () if inspect else staying(graph, operations)
    buffers = make_buffers(operations, views.known, views.written_by_device)
    if assign_pitches(operations, buffers, configuration, spares=True, together=pairs):
        try:
            spared = _arrange(graph, operations, buffers, configuration, inspect, pairs, returning)
            return Plan(operations, buffers, spared)
        except PlanError:
            buffers = make_buffers(operations, views.known, views.written_by_device)
            assign_pitches(operations, buffers, configuration, together=pairs)
    try:
        arrangement = _arrange(graph, operations, buffers, configuration, inspect, pairs, returning)
    except PlanError as error:
        more = _largest_copies(operations, len(uncopied))
        if not more:
            raise
        failure = error
    else:
        return Plan(operations, buffers, arrangement)
    try:
        return _plan(
            graph, configuration, inspect, on_host, uncopied=uncopied | more, returning=returning
        )
    except PlanError:
        raise failure from None


def _largest_copies(operations: Sequence[Operation], before: int) -> frozenset[str]:
    """The next copies that the host makes: as many as it makes already, the largest ones."""
    copies = [made for made in operations if isinstance(made, Map) and made.gathers]
    copies.sort(key=lambda made: made.output.elements, reverse=True)
    return frozenset(made.node.name for made in copies[: max(before, 1)])


def _plan_halved(graph: Graph, configuration: Configuration, on_host: frozenset[str]) -> list[Plan]:
    """With layers whose halves are computed at once, if there are such and memory is not short:
    with maps fused into the convolutions before them, and without."""
    selected, views = select(graph, configuration, on_host=on_host)
    operations, shown = halve(fold(selected, configuration), views.known, configuration)
    pairs = staying(graph, operations)
    changed = {made.result for made in operations if isinstance(made, Convolution) and made.apart}
    if not changed or changed & set(graph.results):
        return []
    plans: list[Plan] = []
    for spares, fuse in itertools.product((True, False), repeat=2):
        buffers = make_buffers(operations, shown, views.written_by_device)
        assign_pitches(operations, buffers, configuration, spares=spares, together=pairs)
        try:
            for made in operations:
                if isinstance(made, Convolution):
                    channel_tiles(made, buffers[made.source].pitches, configuration)
            arranger = Arranger(
                graph.results,
                operations,
                buffers,
                fuse=fuse,
                inspect=False,
                prolongs=True,
                staying=pairs,
            )
            plans.append(Plan(operations, buffers, arranger.arrange(configuration)))
        except CapacityError:
            continue
    return plans[:2]


def _arrange(
    graph: Graph,
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    configuration: Configuration,
    inspect: bool,
    pairs: Sequence[Pair],
    returning: bool,
) -> Arrangement:
    """With maps fused into the convolutions before them, or, if memory is short, without.

    If it is too short still, convolutions write over their own input where most is alive, in
    smaller and smaller tiles; and even what is inspected is overwritten once it is downloaded.
    """
    prolongs = configuration.traits.overlaps_streams and not inspect
    for fuse in (True, False):
        try:
            arranger = Arranger(
                graph.results,
                operations,
                buffers,
                fuse=fuse,
                inspect=inspect,
                prolongs=prolongs,
                staying=pairs,
                returning=returning,
            )
            return arranger.arrange(configuration)
        except PlanError as error:
            failure = error
    trailing: dict[str, int] = {}
    while True:
        arranger = Arranger(
            graph.results,
            operations,
            buffers,
            fuse=False,
            inspect=inspect,
            trailing=trailing,
            staying=pairs,
        )
        try:
            return arranger.arrange(configuration)
        except PlanError as error:
            candidate = arranger.trailing_candidate(error.moment)
        if candidate is None or trailing.get(candidate, 0) == _MOST_TRAILING:
            raise failure
        trailing[candidate] = trailing.get(candidate, -1) + 1


def _describe(graph: Graph, places: Mapping[str, Placement]) -> dict[str, TensorDescription]:
    described = {}
    for name, tensor in graph.tensors.items():
        if tensor.data is not None:
            continue
        scale = zero_point = None
        quantization = tensor.quantization
        if quantization is not None and len(quantization.scale) == 1:
            scale = float(quantization.scale[0])
            zero_point = int(quantization.zero_point[0])
        place = places.get(name)
        shape = tuple(int(size) for size in tensor.shape)
        described[name] = TensorDescription(shape, tensor.dtype, scale, zero_point, place)
    return described


def _constants(graph: Graph, operations: Sequence[Operation]) -> dict[str, Tensor]:
    """Constants that host layers read."""
    names = {
        name
        for operation in operations
        if isinstance(operation, HostOperation)
        for name in operation.node.inputs
    }
    return {
        name: tensor
        for name, tensor in graph.tensors.items()
        if name in names and tensor.data is not None
    }

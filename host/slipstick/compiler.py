"""The compiler: a graph and a configuration make a program."""

from collections.abc import Mapping, Sequence

from slipstick_rtl.config import Configuration

from .graph import Graph, Tensor
from .passes import optimize
from .program import Program, TensorDescription
from .schedule.arrange import Arrangement, Arranger
from .schedule.assemble import Assembler
from .schedule.compact_cycles import CompactCycleModel
from .schedule.cycles import CycleModel
from .schedule.emit import ConvolutionEmitter, MapEmitter, Site
from .schedule.groups import Group
from .schedule.images import Images
from .schedule.layout import Buffer, assign_pitches, make_buffers
from .schedule.operations import Alias, Convolution, HostOperation, Map, Operation
from .schedule.planner import PlanError
from .schedule.search import schedule_runs
from .schedule.select import require_tensors, select
from .schedule.streams import Timeline

_MOST_TRAILING = 16
"""Tiles of rows beyond the fewest, at most, of a convolution that writes over its input."""


def compile_graph(graph: Graph, configuration: Configuration, *, inspect: bool = False) -> Program:
    """Compiles a network for one piece of hardware.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    inspect : bool
        For verification: every group of layers is a run of its own, nothing is overwritten in
        place, and the output of every layer on the device is downloaded after its run.

    Raises
    ------
    CapacityError
        If the network does not fit the memories; names the memory, what is needed, what is there.
    ModelError
        If the graph contradicts itself.
    UnsupportedError
        If its semantics are not the device's.
    """
    require_tensors(graph)
    graph = optimize(graph)
    operations, buffers, arrangement = _plan(graph, configuration, inspect)
    images = Images(configuration)
    runs = _groups(operations, buffers, arrangement, images, configuration)
    loaded = images.all()
    model = (CompactCycleModel if configuration.is_compact else CycleModel)(configuration)
    numbers = sorted(runs)
    timelines = schedule_runs(
        [runs[number] for number in numbers], Timeline(model), configuration.instructions
    )
    streams = dict(zip(numbers, timelines, strict=True))
    assembler = Assembler(operations, arrangement, streams)
    steps = assembler.steps()
    return Program(
        name=graph.name,
        semantics=graph.semantics,
        configuration=configuration.to_dict(),
        fingerprint=configuration.fingerprint,
        tensors=_describe(graph, arrangement),
        inputs=graph.inputs,
        outputs=graph.outputs,
        images=(*assembler.images, *loaded),
        steps=steps,
        constants=_constants(graph, operations),
        layers=assembler.layers(),
    )


def _plan(
    graph: Graph, configuration: Configuration, inspect: bool, *, copies: bool = True
) -> tuple[Sequence[Operation], dict[str, Buffer], Arrangement]:
    """What runs where; copies of activations on the device or, if memory is short, on the host."""
    operations, views = select(graph, configuration, copies=copies)
    buffers = make_buffers(operations, views)
    assign_pitches(operations, buffers, configuration)
    try:
        arrangement = _arrange(graph, operations, buffers, configuration, inspect)
    except PlanError as error:
        if not any(isinstance(made, Map) and made.gathers for made in operations):
            raise
        failure = error
    else:
        return operations, buffers, arrangement
    try:
        return _plan(graph, configuration, inspect, copies=False)
    except PlanError:
        raise failure from None


def _arrange(
    graph: Graph,
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    configuration: Configuration,
    inspect: bool,
) -> Arrangement:
    """With maps fused into the convolutions before them, or, if memory is short, without.

    If it is too short still, convolutions write over their own input where most is alive, in
    smaller and smaller tiles; and even what is inspected is overwritten once it is downloaded.
    """
    for fuse in (True, False):
        try:
            arranger = Arranger(graph, operations, buffers, fuse=fuse, inspect=inspect)
            return arranger.arrange(configuration)
        except PlanError as error:
            failure = error
    trailing: dict[str, int] = {}
    while True:
        arranger = Arranger(
            graph, operations, buffers, fuse=False, inspect=inspect, trailing=trailing
        )
        try:
            return arranger.arrange(configuration)
        except PlanError as error:
            candidate = arranger.trailing_candidate(error.moment)
        if candidate is None or trailing.get(candidate, 0) == _MOST_TRAILING:
            raise failure
        trailing[candidate] = trailing.get(candidate, -1) + 1


def _groups(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    images: Images,
    configuration: Configuration,
) -> dict[int, list[Group]]:
    """The groups of every run; weights and parameters are placed on the way."""
    runs: dict[int, list[Group]] = {}
    tables: dict[int, tuple[int, int]] = {}
    for moment in arrangement.moments:
        convolution, maps, load = None, [], False
        for index in moment.operations:
            operation = operations[index]
            if isinstance(operation, HostOperation | Alias):
                continue
            site = Site(
                tuple(arrangement.places[name] for name in operation.sources),
                arrangement.places[operation.result],
                tuple(buffers[name].name for name in operation.sources),
                buffers[operation.result].name,
            )
            if isinstance(operation, Convolution):
                convolution = ConvolutionEmitter(operation, index, site, images, configuration)
                continue
            emitter = MapEmitter(operation, index, site, images, configuration)
            maps.append(emitter)
            if emitter.table is not None:
                # a table that the map before left there need not be loaded again
                load = tables.get(moment.run) != emitter.table
                tables[moment.run] = emitter.table
        if convolution or maps:
            first = moment.operations[0]
            trailing = 0
            if convolution is not None:
                trailing = arrangement.row_tiles.get(convolution.convolution.result, 0)
            group = Group(first, convolution, tuple(maps), configuration, load, trailing)
            runs.setdefault(moment.run, []).append(group)
    return runs


def _describe(graph: Graph, arrangement: Arrangement) -> dict[str, TensorDescription]:
    described = {}
    for name, tensor in graph.tensors.items():
        if tensor.data is not None:
            continue
        scale = zero_point = None
        quantization = tensor.quantization
        if quantization is not None and len(quantization.scale) == 1:
            scale = float(quantization.scale[0])
            zero_point = int(quantization.zero_point[0])
        place = arrangement.places.get(name)
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

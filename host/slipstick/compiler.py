"""The compiler: a graph and a configuration make a program."""

import math
from collections.abc import Mapping, Sequence

from slipstick_rtl.config import Configuration

from .errors import CapacityError
from .graph import Graph, Tensor
from .passes import optimize
from .program import Program
from .schedule.arrange import Arrangement, Arranger
from .schedule.assemble import Assembler, layer_record
from .schedule.compact_cycles import CompactCycleModel
from .schedule.cutting import Cutter
from .schedule.cycles import CycleModel
from .schedule.images import Images
from .schedule.layout import Buffer, assign_pitches, make_buffers
from .schedule.operations import HostOperation, Map, Operation
from .schedule.planner import PlanError
from .schedule.runs import make_groups
from .schedule.search import schedule_runs
from .schedule.select import require_tensors, select
from .schedule.streaming import Streamer
from .schedule.streams import Timeline
from .steps import Image, LayerRecord, Placement, Step, TensorDescription

_MOST_TRAILING = 16
"""Tiles of rows beyond the fewest, at most, of a convolution that writes over its input."""


def compile_graph(
    graph: Graph, configuration: Configuration, *, inspect: bool = False, cut: bool = True
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
    if not cut:
        return _compile_whole(graph, configuration, inspect)
    if _is_hopeless(graph, configuration):
        return _compile_cut(graph, configuration, inspect)
    try:
        return _compile_whole(graph, configuration, inspect)
    except CapacityError:
        return _compile_cut(graph, configuration, inspect)


def _is_hopeless(graph: Graph, configuration: Configuration) -> bool:
    """Whether the weights cannot fit at once: nothing need be tried then."""
    weights = {
        node.inputs[1]
        for node in graph.nodes
        if node.operator in ("conv2d", "depthwise_conv2d", "fully_connected")
    }
    return sum(math.prod(graph.tensors[name].shape) for name in weights) > (
        configuration.weight_bytes
    )


def _compile_whole(graph: Graph, configuration: Configuration, inspect: bool) -> Program:
    """All on the chip at once."""
    operations, buffers, arrangement = _plan(graph, configuration, inspect)
    images = Images(configuration)
    runs = make_groups(operations, buffers, arrangement, images, configuration)
    loaded = images.all()
    model = (CompactCycleModel if configuration.is_compact else CycleModel)(configuration)
    numbers = sorted(runs)
    timelines = schedule_runs(
        [runs[number] for number in numbers], Timeline(model), configuration.instructions
    )
    streams = dict(zip(numbers, timelines, strict=True))
    assembler = Assembler(operations, arrangement, streams)
    return _program(
        graph,
        configuration,
        operations,
        arrangement.places,
        images=(*assembler.images, *loaded),
        steps=assembler.steps(),
        layers=assembler.layers(),
    )


def _compile_cut(graph: Graph, configuration: Configuration, inspect: bool) -> Program:
    """In segments, strips and boxes, with what they need streamed from the host."""
    selected, views = select(graph, configuration, cut=True)
    cutter = Cutter(selected, set(graph.outputs), configuration, inspect=inspect)
    pieces = cutter.pieces()
    streamed = Streamer(pieces, cutter.operations, views.known, configuration).stream()
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
    )


def _plan(
    graph: Graph, configuration: Configuration, inspect: bool, *, copies: bool = True
) -> tuple[Sequence[Operation], dict[str, Buffer], Arrangement]:
    """What runs where; copies of activations on the device or, if memory is short, on the host."""
    operations, views = select(graph, configuration, copies=copies)
    buffers = make_buffers(operations, views.known, views.written_by_device)
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
            arranger = Arranger(graph.outputs, operations, buffers, fuse=fuse, inspect=inspect)
            return arranger.arrange(configuration)
        except PlanError as error:
            failure = error
    trailing: dict[str, int] = {}
    while True:
        arranger = Arranger(
            graph.outputs, operations, buffers, fuse=False, inspect=inspect, trailing=trailing
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

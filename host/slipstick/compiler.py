"""The compiler: a graph and a configuration make a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import POST_FIELDS, Opcode, pack
from slipstick_rtl.link.protocol import Space

from .errors import CapacityError
from .graph import Graph, Tensor
from .passes import optimize
from .program import (
    DownloadStep,
    HostStep,
    Image,
    LayerRecord,
    Program,
    RunStep,
    Step,
    TensorDescription,
    UploadStep,
)
from .schedule.arrange import Arrangement, Arranger
from .schedule.cycles import END_CYCLES, CycleModel
from .schedule.emit import ConvolutionEmitter, MapEmitter, Site
from .schedule.groups import Group
from .schedule.images import Images
from .schedule.layout import Buffer, assign_pitches, make_buffers
from .schedule.operations import Alias, Convolution, HostOperation, Map, Operation
from .schedule.search import schedule_runs
from .schedule.select import select
from .schedule.streams import Timeline

_HALT = pack(POST_FIELDS, {"opcode": Opcode.HALT})


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
    graph = optimize(graph)
    operations, views = select(graph, configuration)
    buffers = make_buffers(operations, views)
    assign_pitches(operations, buffers, configuration)
    arrangement = _arrange(graph, operations, buffers, configuration, inspect)
    images = Images(configuration)
    runs = _groups(operations, buffers, arrangement, images, configuration)
    model = CycleModel(configuration)
    numbers = sorted(runs)
    timelines = schedule_runs(
        [runs[number] for number in numbers], Timeline(model), configuration.instructions
    )
    streams = dict(zip(numbers, timelines, strict=True))
    assembler = _Assembler(graph, operations, arrangement, streams)
    steps = assembler.steps()
    return Program(
        name=graph.name,
        semantics=graph.semantics,
        configuration=configuration.to_dict(),
        fingerprint=configuration.fingerprint,
        tensors=_describe(graph, arrangement),
        inputs=graph.inputs,
        outputs=graph.outputs,
        images=(*assembler.images, *images.all()),
        steps=steps,
        constants=_constants(graph, operations),
        layers=assembler.layers(),
    )


def _arrange(
    graph: Graph,
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    configuration: Configuration,
    inspect: bool,
) -> Arrangement:
    """With maps fused into the convolutions before them, or, if memory is short, without."""
    try:
        return Arranger(graph, operations, buffers, fuse=True, inspect=inspect).arrange(
            configuration
        )
    except CapacityError:
        alone = Arranger(graph, operations, buffers, fuse=False, inspect=inspect)
        return alone.arrange(configuration)


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
            group = Group(first, convolution, tuple(maps), configuration, load)
            runs.setdefault(moment.run, []).append(group)
    return runs


@dataclass
class _Span:
    """Instructions of an operation in both streams, and its completion."""

    matrix: tuple[int, int]
    post: tuple[int, int]
    cycles: int


class _Assembler:
    """Lays the runs' streams into instruction memory and writes the mapping table."""

    def __init__(
        self,
        graph: Graph,
        operations: Sequence[Operation],
        arrangement: Arrangement,
        timelines: Mapping[int, Timeline],
    ) -> None:
        self._graph, self._operations = graph, operations
        self._arrangement, self._timelines = arrangement, timelines
        self._run_steps: dict[int, RunStep] = {}
        self._step_of: dict[int, int] = {}
        code = bytearray()
        for run, timeline in timelines.items():
            starts = []
            for stream in (timeline.matrix, timeline.post):
                starts.append(len(code) // 4)
                code += b"".join(issued.packed() for issued in stream) + _HALT
            self._run_steps[run] = RunStep(*starts)
        self.images = (Image(int(Space.INSTRUCTIONS), 0, bytes(code)),) if code else ()

    def steps(self) -> tuple[Step, ...]:
        """Uploads, runs, downloads and host layers in order."""
        steps: list[Step] = []
        moments, run_step = self._arrangement.moments, 0
        for number, moment in enumerate(moments):
            if moment.on_host:
                node = self._operations[moment.operations[0]].node
                self._step_of[moment.operations[0]] = len(steps)
                steps.append(
                    HostStep(node.name, node.operator, node.inputs, node.outputs, node.attributes)
                )
                continue
            if number == self._arrangement.moments_of(moment.run)[0]:
                steps += map(UploadStep, self._arrangement.uploads.get(moment.run, []))
                run_step = len(steps)
                if moment.run in self._run_steps:
                    steps.append(self._run_steps[moment.run])
                steps += map(DownloadStep, self._arrangement.downloads.get(moment.run, []))
            for index in moment.operations:
                self._step_of[index] = run_step
        return tuple(steps)

    def _spans(self) -> dict[int, _Span]:
        """Where each operation's instructions are, and the cycles between completions."""
        spans: dict[int, _Span] = {}
        offsets = [0, 0]
        for timeline in self._timelines.values():
            ends: dict[int, int] = {}
            for stream, issued in enumerate((timeline.matrix, timeline.post)):
                for position, item in enumerate(issued, offsets[stream]):
                    operation = item.instruction.operation
                    span = spans.setdefault(operation, _Span((0, 0), (0, 0), 0))
                    name = ("matrix", "post")[stream]
                    start = getattr(span, name)[0] if any(getattr(span, name)) else position
                    setattr(span, name, (start, position + 1))
                    ends[operation] = max(ends.get(operation, 0), item.completion)
                offsets[stream] += len(issued)
            reached = 0
            for operation in sorted(ends):
                spans[operation].cycles = max(ends[operation] - reached, 0)
                reached = max(reached, ends[operation])
            if ends:
                spans[max(ends)].cycles += END_CYCLES
        return spans

    def layers(self) -> tuple[LayerRecord, ...]:
        """The mapping table, after ``steps``."""
        spans = self._spans()
        records = []
        for index, operation in enumerate(self._operations):
            node = operation.node
            span = spans.get(index, _Span((0, 0), (0, 0), 0))
            where = "host" if isinstance(operation, HostOperation) else "device"
            records.append(
                LayerRecord(
                    node.name,
                    node.operator,
                    where,
                    _why(operation),
                    operation.macs,
                    span.cycles,
                    span.matrix,
                    span.post,
                    node.outputs[0],
                    self._step_of.get(index, 0),
                )
            )
        return tuple(records)


def _why(operation: Operation) -> str:
    match operation:
        case HostOperation():
            return operation.why
        case Alias():
            return f"the bytes of {operation.source}"
        case Convolution():
            return "array, depthwise" if operation.is_diagonal else "array"
        case Map():
            return "post-processor, table" if operation.table is not None else "post-processor"


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

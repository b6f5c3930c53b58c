"""Streams laid into instruction memory, the steps of an inference, and the mapping table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.isa import POST_FIELDS, Opcode, pack
from slipstick_rtl.link.protocol import Space

from ..attribution import LayerTimes, attribute
from ..program import DownloadStep, HostStep, Image, LayerRecord, RunStep, Step, UploadStep
from .arrange import Arrangement
from .cycles import END_CYCLES
from .operations import Alias, Convolution, HostOperation, Map, Operation
from .streams import Issued, Timeline

_HALT = pack(POST_FIELDS, {"opcode": Opcode.HALT})


@dataclass
class _Span:
    """Instructions of an operation, by stream, and the cycles that count as its own."""

    ranges: list[tuple[int, int]]
    cycles: int = 0


def _no_span() -> _Span:
    return _Span([(0, 0), (0, 0)])


class Assembler:
    """Lays the runs' streams into instruction memory and writes the mapping table."""

    def __init__(
        self,
        operations: Sequence[Operation],
        arrangement: Arrangement,
        timelines: Mapping[int, Timeline],
    ) -> None:
        self._operations = operations
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
        """Where each operation's instructions are, and its cycles."""
        spans: dict[int, _Span] = {}
        offsets = [0, 0]
        for timeline in self._timelines.values():
            times: dict[int, LayerTimes] = {}
            for stream, issued in enumerate((timeline.matrix, timeline.post)):
                for position, item in enumerate(issued, offsets[stream]):
                    operation = item.instruction.operation
                    ranges = spans.setdefault(operation, _no_span()).ranges
                    first = ranges[stream][0] if any(ranges[stream]) else position
                    ranges[stream] = (first, position + 1)
                    _note(times.setdefault(operation, LayerTimes()), item)
                offsets[stream] += len(issued)
            order = sorted(times)
            cycles = attribute([times[index] for index in order], timeline.end + END_CYCLES)
            for operation, own in zip(order, cycles, strict=True):
                spans[operation].cycles = own
        return spans

    def layers(self) -> tuple[LayerRecord, ...]:
        """The mapping table, after ``steps``."""
        spans = self._spans()
        records = []
        for index, operation in enumerate(self._operations):
            node = operation.node
            span = spans.get(index, _no_span())
            where = "host" if isinstance(operation, HostOperation) else "device"
            records.append(
                LayerRecord(
                    node.name,
                    node.operator,
                    where,
                    _why(operation),
                    operation.macs,
                    span.cycles,
                    span.ranges[0],
                    span.ranges[1],
                    node.outputs[0],
                    self._step_of.get(index, 0),
                )
            )
        return tuple(records)


def _note(times: LayerTimes, item: Issued) -> None:
    if item.instruction.is_matrix:
        times.array_starts.append(item.start)
        times.array_ends.append(item.completion)
    else:
        times.post_ends.append(item.completion)


def _why(operation: Operation) -> str:
    match operation:
        case HostOperation():
            return operation.why
        case Alias():
            return f"the bytes of {operation.source}"
        case Convolution():
            return "array, depthwise" if operation.is_diagonal else "array"
        case Map(gathers=True):
            return "post-processor, copy"
        case Map():
            return "post-processor, table" if operation.table is not None else "post-processor"

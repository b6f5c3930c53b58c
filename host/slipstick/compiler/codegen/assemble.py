"""Streams laid into instruction memory, the steps of an inference, and the mapping table."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

from slipstick_rtl.link.protocol import Space

from ...program.steps import (
    DownloadStep,
    HostStep,
    Image,
    LayerRecord,
    Owners,
    RunStep,
    Step,
    UploadStep,
)
from ..ir.operations import Alias, Convolution, HostOperation, Map, Operation
from ..memory.liveness import Arrangement
from ..timing.attribution import LayerTimes, attribute
from ..timing.cycle_model import END_CYCLES
from ..timing.timeline import Issued, Timeline, packed


class Assembler:
    """Lays the runs' streams into instruction memory and writes the mapping table.

    ``second`` is the second copy of the only run's instructions; it begins at ``second_pcs``.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        arrangement: Arrangement,
        timelines: Mapping[int, Timeline],
        second: Timeline | None = None,
    ) -> None:
        self._operations = operations
        self._arrangement, self._timelines = arrangement, timelines
        self._run_steps: dict[int, RunStep] = {}
        code = bytearray()

        def lay(timeline: Timeline) -> tuple[int, ...]:
            starts = []
            for stream in timeline.merged():
                starts.append(len(code) // 4)
                code.extend(packed(stream, {}))
            return tuple(starts)

        for run, timeline in timelines.items():
            starts = lay(timeline)
            owned = tuple(owners(stream) for stream in timeline.streams)
            self._run_steps[run] = RunStep(starts, owned)
        self.second_pcs = None if second is None else lay(second)
        self.images = (Image(int(Space.INSTRUCTIONS), 0, bytes(code)),) if code else ()

    def steps(self) -> tuple[Step, ...]:
        """Uploads, runs, downloads and host layers in order."""
        steps: list[Step] = []
        moments = self._arrangement.moments
        for number, moment in enumerate(moments):
            if moment.on_host:
                node = self._operations[moment.operations[0]].node
                steps.append(
                    HostStep(node.name, node.operator, node.inputs, node.outputs, node.attributes)
                )
                continue
            if number == self._arrangement.moments_of(moment.run)[0]:
                steps += map(UploadStep, self._arrangement.uploads.get(moment.run, []))
                if moment.run in self._run_steps:
                    steps.append(self._run_steps[moment.run])
                steps += map(DownloadStep, self._arrangement.downloads.get(moment.run, []))
        return tuple(steps)

    def layers(self) -> tuple[LayerRecord, ...]:
        """The mapping table."""
        cycles: Counter[int] = Counter()
        for timeline in self._timelines.values():
            cycles.update(layer_cycles(timeline))
        return tuple(
            layer_record(operation, cycles[index])
            for index, operation in enumerate(self._operations)
        )


def layer_record(operation: Operation, cycles: int) -> LayerRecord:
    """An operation's line of the mapping table."""
    where = "host" if isinstance(operation, HostOperation) else "device"
    node = operation.node
    return LayerRecord(
        node.name, node.operator, where, _why(operation), operation.macs, cycles, node.outputs[0]
    )


def layer_cycles(timeline: Timeline) -> dict[int, int]:
    """The cycles of a run that count as each operation's own; see ``attribute``."""
    times: dict[int, LayerTimes] = {}
    for item in (*timeline.matrix, *timeline.post):
        own = times.setdefault(item.instruction.operation, LayerTimes())
        own.note(item.instruction.is_matrix, item.start, item.completion)
    order = sorted(times)
    cycles = attribute([times[index] for index in order], timeline.end + END_CYCLES)
    return dict(zip(order, cycles, strict=True))


def owners(stream: Sequence[Issued], numbers: Sequence[int] | None = None) -> Owners:
    """Names the owners of a stream's instructions are, each turn counted.

    ``numbers`` are its operations' in the network.
    """
    runs = itertools.groupby(item.instruction.operation for item in stream)
    return tuple(
        (operation if numbers is None else numbers[operation], len(list(items)))
        for operation, items in runs
    )


def _why(operation: Operation) -> str:
    match operation:
        case HostOperation():
            return operation.why
        case Alias():
            return f"the bytes of {operation.source}"
        case Convolution():
            how = "array, depthwise" if operation.is_diagonal else "array"
            if operation.pixels > 1:
                how = f"array, {operation.pixels} pixels at once"
            return how if operation.function is None else f"{how}; table of results"
        case Map(gathers=True):
            return "post-processor, copy"
        case Map():
            return "post-processor, table" if operation.table is not None else "post-processor"

"""Where the cycles of an inference went: the event log of the simulated core, layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, WORDS_PER_INSTRUCTION, Opcode, unpack
from slipstick_rtl.link.protocol import Space

from .attribution import LayerTimes, attribute
from .errors import DeviceError
from .pictures import Span
from .program import LayerRecord, Program, RunStep

STREAMS = ("matrix", "post")


@dataclass(frozen=True)
class RunEvents:
    """What one run of the core did, in cycles from its start.

    Parameters
    ----------
    cycles : int
        Until both streams had ended.
    starts, completions : mapping of array of int by "matrix" and "post"
        The n-th entry is the stream's n-th instruction: when it began to work, and when its results
        had landed.
    """

    cycles: int
    starts: Mapping[str, np.ndarray]
    completions: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class LayerProfile:
    """A layer's line: the cycles that ``attribution`` counts as its own, and when it worked."""

    layer: LayerRecord
    cycles: int
    spans: tuple[Span, ...]

    def utilisation(self, macs_per_cycle: int) -> float | None:
        """Share of the array's peak, None for a layer without multiply-accumulates or cycles."""
        if not self.layer.macs or not self.cycles:
            return None
        return self.layer.macs / (self.cycles * macs_per_cycle)


def profile(program: Program, events: Sequence[RunEvents]) -> list[LayerProfile]:
    """The layers of an inference.

    Parameters
    ----------
    program : Program
    events : sequence of RunEvents
        One a RunStep of the program, in order. Runs are laid end to end; what the host does between
        them takes no cycles here.

    Returns
    -------
    list of LayerProfile
        In the order of ``program.layers``; their cycles sum up to the runs' cycles.

    Raises
    ------
    DeviceError
        If the log is not of this program's instructions.
    """
    instructions = _decode(program)
    starts, completions, ends = _join(events)
    for stream in STREAMS:
        count = len(instructions[stream])
        if not len(starts[stream]) == len(completions[stream]) == count:
            raise DeviceError(
                f"the event log must hold the {count} {stream} instructions of {program.name!r},"
                f" not {len(starts[stream])} starts and {len(completions[stream])} completions"
            )
    owners = {stream: _owners(program, stream, instructions[stream]) for stream in STREAMS}
    spans: list[list[Span]] = [[] for _ in program.layers]
    times = [LayerTimes() for _ in program.layers]
    for stream in STREAMS:
        for number, owner in enumerate(owners[stream]):
            start, end = int(starts[stream][number]), int(completions[stream][number])
            name = program.layers[owner].name
            spans[owner].append(Span(name=name, unit=stream, start=start, end=max(start, end)))
            if stream == "matrix":
                times[owner].array_starts.append(start)
                times[owner].array_ends.append(end)
            else:
                times[owner].post_ends.append(end)
    cycles = _layer_cycles(program, times, ends)
    return [
        LayerProfile(layer, own, tuple(parts))
        for layer, own, parts in zip(program.layers, cycles, spans, strict=True)
    ]


def _layer_cycles(program: Program, times: Sequence[LayerTimes], ends: Sequence[int]) -> list[int]:
    """Each layer's cycles, run by run."""
    cycles, begin = [0] * len(program.layers), 0
    run_steps = [i for i, step in enumerate(program.steps) if isinstance(step, RunStep)]
    for step, end in zip(run_steps, ends, strict=True):
        members = [i for i, layer in enumerate(program.layers) if layer.step == step]
        own = attribute([times[index] for index in members], end, begin)
        for index, count in zip(members, own, strict=True):
            cycles[index] = count
        begin = end
    return cycles


def _join(
    events: Sequence[RunEvents],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], list[int]]:
    """Starts and completions of all runs on one axis, and where each run ends."""
    starts: dict[str, list[np.ndarray]] = {stream: [] for stream in STREAMS}
    completions: dict[str, list[np.ndarray]] = {stream: [] for stream in STREAMS}
    offset, ends = 0, []
    for run in events:
        for stream in STREAMS:
            starts[stream].append(np.asarray(run.starts[stream]) + offset)
            completions[stream].append(np.asarray(run.completions[stream]) + offset)
        offset += run.cycles
        ends.append(offset)
    empty = [np.zeros(0, np.int64)]
    return (
        {stream: np.concatenate(starts[stream] or empty) for stream in STREAMS},
        {stream: np.concatenate(completions[stream] or empty) for stream in STREAMS},
        ends,
    )


def _decode(program: Program) -> dict[str, list[dict[str, int]]]:
    """The instructions of both streams over all runs, HALTs left out."""
    memory = bytearray(4 * program.hardware.instruction_words)
    for image in program.images:
        if image.space == Space.INSTRUCTIONS:
            memory[4 * image.address : 4 * image.address + len(image.data)] = image.data
    decoded: dict[str, list[dict[str, int]]] = {stream: [] for stream in STREAMS}
    size = 4 * WORDS_PER_INSTRUCTION
    for step in program.steps:
        if not isinstance(step, RunStep):
            continue
        for stream, pc in zip(STREAMS, (step.matrix_pc, step.post_pc), strict=True):
            fields = MATRIX_FIELDS if stream == "matrix" else POST_FIELDS
            for start in range(4 * pc, len(memory) - size + 1, size):
                instruction = unpack(fields, bytes(memory[start : start + size]))
                if instruction["opcode"] == Opcode.HALT:
                    break
                decoded[stream].append(instruction)
    return decoded


def _owners(program: Program, stream: str, instructions: Sequence[dict[str, int]]) -> list[int]:
    """Which layer each instruction belongs to: layers that overlap in time share ranges."""
    owners = []
    for number, instruction in enumerate(instructions):
        own = [
            index
            for index, layer in enumerate(program.layers)
            if (ends := getattr(layer, stream))[0] <= number < ends[1]
        ]
        if not own:
            raise DeviceError(f"{stream} instruction {number} belongs to no layer")
        owners.append(min(own, key=lambda index: _mismatch(program, index, instruction)))
    return owners


def _mismatch(program: Program, index: int, instruction: Mapping[str, int]) -> tuple[bool, bool]:
    """How badly a layer fits an instruction: convolutions drain, others map to their output."""
    layer = program.layers[index]
    convolves = layer.matrix[1] > layer.matrix[0]
    place = program.tensors[layer.output].placement
    destination = instruction.get("destination", 0)
    inside = place is not None and place.address <= destination < place.end
    return convolves != (instruction["opcode"] in (Opcode.CONVOLVE, Opcode.DRAIN)), not inside

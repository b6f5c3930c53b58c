"""Reads back the instructions that a program's runs execute, and the bytes that they move."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    INSTRUCTION_BITS,
    STREAMS,
    WORDS_PER_INSTRUCTION,
    Field,
    Opcode,
    opcode_of,
    unpack,
)
from slipstick_rtl.link.protocol import Space

from ..errors import ProgramError
from ..program import Program
from ..program.steps import Image, LoadStep, Owners, RunStep

_WORD_BYTES = 4
_INSTRUCTION_BYTES = INSTRUCTION_BITS // 8


@dataclass(frozen=True, slots=True)
class Executed:
    """One turn of an instruction: of which of the program's layers, and its fields."""

    layer: int
    fields: Mapping[str, int]

    @property
    def opcode(self) -> Opcode:
        return Opcode(self.fields["opcode"])

    @property
    def vectors(self) -> int:
        """Counts a CONVOLVE's groups of P pixels that stream through the array for each tile."""
        return self.fields["rows"] * self.fields["groups"]

    @property
    def array_cycles(self) -> int:
        """Counts the cycles of a CONVOLVE in which the array takes a vector."""
        return self.vectors * self.fields["reduction_tiles"]


@dataclass(frozen=True)
class ExecutedRun:
    """The instructions of one run per stream, in their order, HALTs left out."""

    streams: Mapping[str, tuple[Executed, ...]]

    @property
    def matrix(self) -> tuple[Executed, ...]:
        """Instructions of the matrix stream."""
        return self.streams["matrix"]

    @property
    def post(self) -> tuple[Executed, ...]:
        """Instructions of the post stream."""
        return self.streams["post"]

    def stream(self, name: str) -> tuple[Executed, ...]:
        """Instructions of a stream of ``isa.STREAMS``."""
        return self.streams[name]


def executed_runs(program: Program) -> list[ExecutedRun]:
    """Lists the instructions that each RunStep executes, in order.

    Raises
    ------
    ProgramError
        If the instruction memory does not hold what the steps tell of it.
    """
    memory = bytearray(program.hardware.instruction_words * _WORD_BYTES)
    _store(memory, program.images)
    runs = []
    for step in program.steps:
        if isinstance(step, LoadStep):
            _store(memory, [program.loads[step.load]])
        elif isinstance(step, RunStep):
            held = zip(STREAMS.items(), step.pcs, step.owners, strict=True)
            runs.append(
                ExecutedRun(
                    {
                        name: _stream(memory, pc, kind.fields, owners)
                        for (name, kind), pc, owners in held
                    }
                )
            )
    return runs


def _store(memory: bytearray, images: Iterable[Image]) -> None:
    for image in images:
        if image.space == Space.INSTRUCTIONS:
            start = image.address * _WORD_BYTES
            memory[start : start + len(image.data)] = image.data


def _stream(
    memory: bytearray, pc: int, known: Mapping[str, Field], layers: Owners
) -> tuple[Executed, ...]:
    turns: list[Mapping[str, int]] = []
    for word in itertools.count(pc, WORDS_PER_INSTRUCTION):
        packed = bytes(memory[word * _WORD_BYTES :][:_INSTRUCTION_BYTES])
        if len(packed) < _INSTRUCTION_BYTES or opcode_of(packed) == Opcode.HALT:
            break
        fields = unpack(known, packed)
        turns += [fields] * (fields.get("repeats", 0) + 1)
    owners = [layer for layer, count in layers for _ in range(count)]
    if len(owners) != len(turns):
        raise ProgramError(
            f"the stream at word {pc} must hold the {len(owners)} instructions that its step"
            f" tells of, not {len(turns)}"
        )
    return tuple(map(Executed, owners, turns))


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes that cross the ports of the memories on the chip.

    Parameters
    ----------
    weights : int
        Read from the weight memory for the array.
    windows : int
        Read from the activation memory for the array: R for each of P pixels a vector, lanes that
        idle and padding included.
    results : int
        Read and written by the post-processor: L bytes an access.
    """

    weights: int = 0
    windows: int = 0
    results: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            weights=self.weights + other.weights,
            windows=self.windows + other.windows,
            results=self.results + other.results,
        )

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.weights + self.windows + self.results


def traffic(configuration: Configuration, instruction: Executed) -> Traffic:
    """Counts the bytes that one turn of an instruction moves."""
    fields, columns = instruction.fields, configuration.columns
    if instruction.opcode == Opcode.CONVOLVE:
        tile = configuration.rows * columns
        if fields["diagonal"]:
            tile //= configuration.tile_words
        vector = configuration.pixels * configuration.rows
        return Traffic(
            weights=fields["reduction_tiles"] * tile, windows=instruction.array_cycles * vector
        )
    if instruction.opcode == Opcode.TABLE:
        word = configuration.rows // configuration.tile_words * columns
        return Traffic(weights=fields["table_words"] * word)
    steps = fields["rows"] * fields["columns"] * fields["slices"]
    accesses = 1 if instruction.opcode == Opcode.DRAIN else fields["taps_y"] * fields["taps_x"] + 1
    return Traffic(results=steps * accesses * configuration.lanes)


def layer_traffic(program: Program, runs: Sequence[ExecutedRun]) -> list[Traffic]:
    """Counts the bytes that each of a program's layers moves in one inference."""
    moved = [Traffic() for _ in program.layers]
    for run in runs:
        for instruction in (*run.matrix, *run.post):
            moved[instruction.layer] += traffic(program.hardware, instruction)
    return moved

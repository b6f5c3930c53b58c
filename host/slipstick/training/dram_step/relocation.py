"""Moves programs: their instructions name places of the memories."""

from collections.abc import Mapping
from dataclasses import dataclass

from slipstick_rtl.isa import (
    MATRIX_FIELDS,
    POST_FIELDS,
    WORDS_PER_INSTRUCTION,
    Field,
    Opcode,
    TrainingFlag,
    pack,
)

INSTRUCTION_BYTES = 4 * WORDS_PER_INSTRUCTION
HALT = pack(POST_FIELDS, {"opcode": Opcode.HALT})


@dataclass(frozen=True)
class Streams:
    """Instructions of both streams, without their HALT.

    Parameters
    ----------
    matrix, post : bytes
    """

    matrix: bytes = b""
    post: bytes = b""

    @classmethod
    def of(cls, code: bytes, pcs: tuple[int, int]) -> "Streams":
        """Those of a program: its matrix stream, its post stream, each with a HALT."""
        second = 4 * pcs[1]
        return cls(code[4 * pcs[0] : second - len(HALT)], code[second : -len(HALT)])

    @property
    def words(self) -> int:
        """Of the instruction memory, HALTs included."""
        return (len(self.matrix) + len(self.post) + 2 * len(HALT)) // 4


@dataclass(frozen=True)
class Shifts:
    """By how much a program's places are moved.

    Parameters
    ----------
    weights : int
        Words of the weight memory.
    source, result, mask : int
        Bytes of the activation memory: what CONVOLVE or MAP reads, what is written, and what MASKED
        DRAINs read.
    """

    weights: int = 0
    source: int = 0
    result: int = 0
    mask: int = 0


def moved(streams: Streams, shifts: Shifts) -> Streams:
    """The same streams with other places.

    Parameters
    ----------
    streams : Streams
    shifts : Shifts
    """
    return Streams(
        b"".join(_moved(each, shifts, MATRIX_FIELDS) for each in _split(streams.matrix)),
        b"".join(_moved(each, shifts, POST_FIELDS) for each in _split(streams.post)),
    )


def _split(stream: bytes) -> list[bytes]:
    size = INSTRUCTION_BYTES
    return [stream[first : first + size] for first in range(0, len(stream), size)]


def _positions(fields: Mapping[str, Field]) -> dict[str, tuple[int, int]]:
    """The lowest bit and the width of each field."""
    found, position = {}, 0
    for name, field in fields.items():
        found[name] = position, field.width
        position += field.width
    return found


_POSITIONS = {id(fields): _positions(fields) for fields in (MATRIX_FIELDS, POST_FIELDS)}


def _moved(instruction: bytes, shifts: Shifts, fields: Mapping[str, Field]) -> bytes:
    value, positions = int.from_bytes(instruction, "little"), _POSITIONS[id(fields)]

    def get(name: str) -> int:
        position, width = positions[name]
        return value >> position & (1 << width) - 1

    opcode = get("opcode")
    if opcode == Opcode.CONVOLVE:
        moves = {"weight_address": shifts.weights, "origin": shifts.source}
    elif opcode == Opcode.TABLE:
        moves = {"table_address": shifts.weights}
    elif opcode == Opcode.MAP:
        moves = {"source": shifts.source, "destination": shifts.result}
        moves["parameter_address"] = shifts.weights
    elif opcode == Opcode.DRAIN:
        moves = {"destination": shifts.result, "parameter_address": shifts.weights}
        if get("table_words") & TrainingFlag.MASKED:
            moves["source"] = shifts.mask
    else:
        moves = {}
    for name, shift in moves.items():
        position, width = positions[name]
        changed = get(name) + shift & (1 << width) - 1
        value = value & ~((1 << width) - 1 << position) | changed << position
    return value.to_bytes(len(instruction), "little")

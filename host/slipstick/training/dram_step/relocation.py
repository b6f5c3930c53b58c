"""Moves programs: their instructions name places of the memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.isa import (
    MATRIX_FIELDS,
    POST_FIELDS,
    WORDS_PER_INSTRUCTION,
    Field,
    Opcode,
    TrainingFlag,
    pack,
    unpack,
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
        """Counts the words of instructions, HALTs included."""
        return (len(self.matrix) + len(self.post) + 2 * len(HALT)) // 4


@dataclass(frozen=True)
class Built:
    """A program that can be moved.

    Parameters
    ----------
    streams : Streams
    constants : bytes
        From the first word of the weight memory on.
    """

    streams: Streams
    constants: bytes


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


def behind(streams: Streams, before: bytes) -> Streams:
    """The same streams with other instructions before the post stream.

    The array begins at once: only what waits for results waits for more of them.

    Parameters
    ----------
    streams : Streams
        None of whose instructions is repeated.
    before : bytes
        Instructions that wait for nothing.
    """
    count = len(before) // INSTRUCTION_BYTES
    matrix = b"".join(_waiting(each, count) for each in _split(streams.matrix))
    return Streams(matrix, before + streams.post)


def in_parts(streams: Streams, parts: int) -> Streams:
    """The same streams with other banks of accumulators.

    Parameters
    ----------
    streams : Streams
        With 0 in ``parts``.
    parts : int
        As instructions have it.
    """

    def changed(stream: bytes, fields: Mapping[str, Field]) -> bytes:
        place = parts << _POSITIONS[id(fields)]["parts"][0]
        return b"".join(
            (int.from_bytes(each, "little") | place).to_bytes(len(each), "little")
            for each in _split(stream)
        )

    return Streams(changed(streams.matrix, MATRIX_FIELDS), changed(streams.post, POST_FIELDS))


def without_masks(streams: Streams, masked: Sequence[bool]) -> Streams:
    """The same streams, of whose DRAINs some read no masks.

    Parameters
    ----------
    streams : Streams
        Whose post instructions are DRAINs.
    masked : sequence of bool
        Of each DRAIN, whether it stays as it is.
    """
    post = [
        each if stays else _unmasked(each)
        for each, stays in zip(_split(streams.post), masked, strict=True)
    ]
    return Streams(streams.matrix, b"".join(post))


def _unmasked(instruction: bytes) -> bytes:
    fields = unpack(POST_FIELDS, instruction)
    fields["table_words"] &= ~TrainingFlag.MASKED
    fields |= {name: 0 for name in fields if name.startswith("source")}
    return pack(POST_FIELDS, fields)


def _waiting(instruction: bytes, count: int) -> bytes:
    """A matrix instruction that waits, if it does, for so many more of the post stream."""
    value = int.from_bytes(instruction, "little")
    position, width = _POSITIONS[id(MATRIX_FIELDS)]["wait"]
    wait = value >> position & (1 << width) - 1
    if wait:
        value += count << position
    return value.to_bytes(len(instruction), "little")


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

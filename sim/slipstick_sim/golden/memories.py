"""The memories that a run only reads, with what the model has worked out from their contents."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from threading import Lock

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    INSTRUCTION_BITS,
    MATRIX_FIELDS,
    MATRIX_OPCODES,
    POST_FIELDS,
    POST_OPCODES,
    WORDS_PER_INSTRUCTION,
    Opcode,
    opcode_of,
    unpack,
)
from slipstick_rtl.link.protocol import Space

from .convolve import PreparedConvolve
from .post import Parameters

INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
_WORD_BYTES = 4

MATRIX, POST = "matrix", "post"
"""Names of the two instruction streams."""

MOST_PREPARED_BYTES = 1 << 28
"""Of instructions that are kept prepared."""

_STREAMS = {MATRIX: (MATRIX_OPCODES, MATRIX_FIELDS), POST: (POST_OPCODES, POST_FIELDS)}


class PreparedCache:
    """Instructions that were prepared before, by their contents and their weights'.

    A network that is streamed writes the same contents again and again. The least recently used
    are forgotten; several threads may ask.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, PreparedConvolve] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: bytes, make: Callable[[], PreparedConvolve]) -> PreparedConvolve:
        """What ``make`` makes, or has made for this key."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        prepared = make()
        with self._lock:
            if key not in self._known:
                self._known[key] = prepared
                self._bytes += prepared.nbytes
            while self._bytes > MOST_PREPARED_BYTES:
                self._bytes -= self._known.popitem(last=False)[1].nbytes
        return prepared


class Memories:
    """Instruction, weight and parameter memory. Cores that run other inputs may share them.

    Parameters
    ----------
    configuration : Configuration
    cache : PreparedCache, optional
        Shared with others.

    Members
    -------
    weights : array of int8, (weight_words, C)
    parameters : tuple of arrays of int32, int64 and int64, each (parameter_words, L)
        Bias, multiplier and shift.
    """

    def __init__(self, configuration: Configuration, cache: PreparedCache | None = None) -> None:
        self._configuration = configuration
        self._cache = cache or PreparedCache()
        self._instructions = bytearray(configuration.instruction_words * _WORD_BYTES)
        self.weights = np.zeros((configuration.weight_words, configuration.columns), np.int8)
        shape = configuration.parameter_words, configuration.lanes
        self.parameters: Parameters = (
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
        )
        self._decoded: dict[tuple[str, int], dict[str, int] | None] = {}
        self._prepared: dict[int, PreparedConvolve] = {}

    def copy(self) -> "Memories":
        """The same contents in memories of their own."""
        other = Memories(self._configuration, self._cache)
        other._instructions[:] = self._instructions
        other.weights[...] = self.weights
        for own, copied in zip(self.parameters, other.parameters, strict=True):
            copied[...] = own
        return other

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Writes whole units of a memory other than ACTIVATIONS.

        Raises
        ------
        ValueError
            If the data are not whole units or reach beyond the memory.
        """
        configuration = self._configuration
        unit, depth = {
            Space.INSTRUCTIONS: (_WORD_BYTES, configuration.instruction_words),
            Space.WEIGHTS: (configuration.columns, configuration.weight_words),
            Space.PARAMETERS: (configuration.parameter_bytes, configuration.parameter_words),
        }[space]
        count, rest = divmod(len(data), unit)
        if rest:
            raise ValueError(f"{space.name} take whole units of {unit} bytes, not {len(data)}")
        if address < 0 or address + count > depth:
            raise ValueError(
                f"{space.name} units must be within 0..{depth}, not {address}..{address + count}"
            )
        span = range(address, address + count)
        if space is Space.INSTRUCTIONS:
            self._instructions[address * unit : (address + count) * unit] = data
            reached = range(address - WORDS_PER_INSTRUCTION + 1, address + count)
            self._decoded = {
                key: fields for key, fields in self._decoded.items() if key[1] not in reached
            }
            self._prepared = {
                word: prepared for word, prepared in self._prepared.items() if word not in reached
            }
        elif space is Space.WEIGHTS:
            self.weights[span.start : span.stop] = np.frombuffer(data, np.int8).reshape(count, unit)
            stale = [
                word
                for word, prepared in self._prepared.items()
                if prepared.weight_words.start < span.stop
                and span.start < prepared.weight_words.stop
            ]
            for word in stale:
                del self._prepared[word]
        else:
            layout = np.dtype([("bias", "<i4"), ("multiplier", "<u4"), ("shift", "u1")])
            words = np.frombuffer(data, layout).reshape(count, configuration.lanes)
            for array, name in zip(self.parameters, layout.names or (), strict=True):
                array[span.start : span.stop] = words[name]

    def instruction(self, stream: str, word: int) -> dict[str, int] | None:
        """The fields of the instruction at a word; None if the stream has no such opcode there.

        An instruction that reaches beyond the memory's end is none either.
        """
        key = stream, word
        if key not in self._decoded:
            data = bytes(self._instructions[word * _WORD_BYTES :][:INSTRUCTION_BYTES])
            self._decoded[key] = _decode(stream, data)
        return self._decoded[key]

    def prepared(self, word: int) -> PreparedConvolve:
        """The CONVOLVE at a word, ready to execute."""
        if word not in self._prepared:
            instruction = self.instruction(MATRIX, word)
            if instruction is None or instruction["opcode"] != Opcode.CONVOLVE:
                raise ValueError(f"word {word} of the instruction memory must hold a CONVOLVE")
            first, words = instruction["weight_address"], instruction["reduction_tiles"]
            if not instruction["diagonal"]:
                words *= self._configuration.rows
            data = self._instructions[word * _WORD_BYTES :][:INSTRUCTION_BYTES]
            content = hashlib.blake2b(data, digest_size=32)
            content.update(self.weights[first : first + words].tobytes())
            self._prepared[word] = self._cache.get(
                content.digest(),
                lambda: PreparedConvolve(instruction, self.weights, self._configuration),
            )
        return self._prepared[word]


@lru_cache(maxsize=1 << 14)
def _decode(stream: str, data: bytes) -> dict[str, int] | None:
    """The fields of an instruction, for reading only."""
    opcodes, fields = _STREAMS[stream]
    known = len(data) == INSTRUCTION_BYTES and opcode_of(data) in set(map(int, opcodes))
    return unpack(fields, data) if known else None

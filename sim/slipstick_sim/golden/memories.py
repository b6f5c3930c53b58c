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
    STREAMS,
    WORDS_PER_INSTRUCTION,
    Opcode,
    opcode_of,
    unpack,
)
from slipstick_rtl.link.protocol import Space

from .convolve import PreparedConvolve, weight_range
from .parameters import LAYOUT, Parameters, parameter_block
from .repeats import turn
from .weights import weight_words

INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
_WORD_BYTES = 4
_GROUP_CELLS = 8

"""Names of the two instruction streams."""

MOST_PREPARED_BYTES = 1 << 28
"""Bytes of instructions that are kept prepared, at most."""


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
        """Returns what ``make`` makes, or has made before for this key."""
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
    """Instruction and weight memory, and a compact engine's parameter memory.

    Cores that run other inputs may share them.

    Parameters
    ----------
    configuration : Configuration
    cache : PreparedCache, optional
        Shared with others.

    Members
    -------
    weights : array of int8, (weight_words, W, C)
    ninth : array of uint8, (weight_words, W, C)
        The ninth bit of each byte; zero if the configuration has none.
    parameters : tuple of arrays of int32, int64 and int64, each (parameter_words, L)
        Bias, multiplier and shift, of a compact engine.
    """

    def __init__(self, configuration: Configuration, cache: PreparedCache | None = None) -> None:
        self._configuration = configuration
        self._cache = cache or PreparedCache()
        self._instructions = bytearray(configuration.instruction_words * _WORD_BYTES)
        words = configuration.weight_words, configuration.weight_rows, configuration.columns
        self.weights = np.zeros(words, np.int8)
        self.ninth = np.zeros(words, np.uint8)
        shape = configuration.parameter_words, configuration.lanes
        self.parameters: Parameters = (
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
        )
        self._decoded: dict[tuple[str, int], dict[str, int] | None] = {}
        self._prepared: dict[tuple[int, int], PreparedConvolve] = {}

    def copy(self) -> "Memories":
        """The same contents in memories of their own."""
        other = Memories(self._configuration, self._cache)
        other._instructions[:] = self._instructions
        other.weights[...], other.ninth[...] = self.weights, self.ninth
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
            Space.WEIGHTS: (configuration.weight_unit_bytes, configuration.weight_words),
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
            self._write_instructions(span, data)
        elif space is Space.WEIGHTS:
            self._write_weights(span, data)
        else:
            words = np.frombuffer(data, LAYOUT).reshape(count, configuration.lanes)
            for array, name in zip(self.parameters, LAYOUT.names or (), strict=True):
                array[span.start : span.stop] = words[name]

    def _write_instructions(self, span: range, data: bytes) -> None:
        self._instructions[span.start * _WORD_BYTES : span.stop * _WORD_BYTES] = data
        reached = range(span.start - WORDS_PER_INSTRUCTION + 1, span.stop)
        self._decoded = {
            key: fields for key, fields in self._decoded.items() if key[1] not in reached
        }
        self._prepared = {
            key: prepared for key, prepared in self._prepared.items() if key[0] not in reached
        }

    def _write_weights(self, span: range, data: bytes) -> None:
        words = slice(span.start, span.stop)
        cells = np.frombuffer(data, np.uint8)
        if self._configuration.ninth_bits:
            cells, ninth = weight_words(cells)
            self.ninth[words] = ninth.reshape(self.ninth[words].shape)
        self.weights[words] = cells.view(np.int8).reshape(self.weights[words].shape)
        self._forget(span)

    def _forget(self, span: range) -> None:
        """Forgets instructions that were prepared from these words of the weight memory."""
        stale = [
            key
            for key, prepared in self._prepared.items()
            if prepared.weight_words.start < span.stop and span.start < prepared.weight_words.stop
        ]
        for key in stale:
            del self._prepared[key]

    def write_groups(self, first: int, cells: np.ndarray, ninth: np.ndarray | None) -> None:
        """Writes groups of eight cells of the weight memory, as the DMA does.

        Parameters
        ----------
        first : int
            A group.
        cells : array of uint8, (n, 8)
        ninth : array of uint8, (n,), optional
            A bit for each cell of a group.
        """
        end = first + len(cells)
        self.weights.reshape(-1, _GROUP_CELLS)[first:end] = cells.view(np.int8)
        if ninth is not None:
            bits = np.unpackbits(ninth[:, None], axis=1, bitorder="little")
            self.ninth.reshape(-1, _GROUP_CELLS)[first:end] = bits
        size = self._configuration.weight_word_bytes
        span = first * _GROUP_CELLS // size, -(-end * _GROUP_CELLS // size)
        self._forget(range(*span))

    def channel_parameters(self, address: int, slices: int) -> Parameters:
        """Bias, multiplier and shift of the channels that an instruction of so many slices has.

        Raises
        ------
        ValueError
            If they do not lie within the memory.
        """
        if not self._configuration.traits.has_parameter_memory:
            return parameter_block(self.weights, self.ninth, address, self._configuration)
        end, size = address + slices, self._configuration.parameter_words
        if end > size:
            raise ValueError(f"parameter words must lie within 0..{size}, not {address}..{end}")
        bias, multiplier, shift = (array[address:end].reshape(-1) for array in self.parameters)
        return bias, multiplier, shift

    def instruction(self, stream: str, word: int) -> dict[str, int] | None:
        """The fields of the instruction at a word; None if the stream has no such opcode there.

        An instruction that reaches beyond the memory's end is none either.
        """
        key = stream, word
        if key not in self._decoded:
            data = bytes(self._instructions[word * _WORD_BYTES :][:INSTRUCTION_BYTES])
            self._decoded[key] = _decode(stream, data)
        return self._decoded[key]

    def prepared(self, word: int, number: int = 0) -> PreparedConvolve:
        """The n-th turn of the CONVOLVE at a word, ready to execute."""
        key = word, number
        if key not in self._prepared:
            repeated = self.instruction("matrix", word)
            if repeated is None or repeated["opcode"] != Opcode.CONVOLVE:
                raise ValueError(f"word {word} of the instruction memory must hold a CONVOLVE")
            instruction = turn(repeated, number)
            reads = weight_range(instruction, self._configuration)
            source = self.ninth if instruction["from_ninth"] else self.weights
            data = self._instructions[word * _WORD_BYTES :][:INSTRUCTION_BYTES]
            content = hashlib.blake2b(data, digest_size=32)
            content.update(number.to_bytes(2, "little"))
            content.update(source[reads.start : reads.stop].tobytes())
            self._prepared[key] = self._cache.get(
                content.digest(),
                lambda: PreparedConvolve(
                    instruction, self.weights, self._configuration, self.ninth
                ),
            )
        return self._prepared[key]


@lru_cache(maxsize=1 << 14)
def _decode(stream: str, data: bytes) -> dict[str, int] | None:
    """The fields of an instruction, for reading only."""
    opcodes, fields = STREAMS[stream].opcodes, STREAMS[stream].fields
    known = len(data) == INSTRUCTION_BYTES and opcode_of(data) in set(map(int, opcodes))
    return unpack(fields, data) if known else None

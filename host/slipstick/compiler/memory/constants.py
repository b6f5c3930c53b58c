"""Places what is loaded once: weights, tables and requantisation parameters."""

from collections.abc import Collection

import numpy as np
from slipstick_rtl.config import PARAMETER_BITS, Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS
from slipstick_rtl.isa import Rounding
from slipstick_rtl.link.protocol import Space
from slipstick_rtl.numbers.rounding import encode_shift

from ...program.steps import Image
from ..ir.operations import stored_table
from ..ir.requantization import Requantization
from .constant_pool import Store

_PARAMETER = np.dtype([("bias", "<i4"), ("multiplier", "<u4"), ("shift", "u1")])
_IDLE_SHIFT = encode_shift(Rounding.DOUBLE, 0)
_CELL_BITS = 9

CELLS_OF_NINTH = 8
"""Words of the weight memory whose ninth bits are one word of weights."""


class Images:
    """The contents of weight and parameter memory as operations add to them.

    Parameters lie between the weights; or, with ``ninth_bits``, in the ninth bits of the weight
    memory, beside weights that they have nothing to do with; or, in a compact engine, in a memory
    of their own.

    Parameters
    ----------
    configuration : Configuration
    shares : bool
        Whether what is equal is stored once: addresses depend on the contents then.
    in_ninth : collection of str
        Layers whose weights are ninth bits as well, eight words for each: what has no room else.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        shares: bool = True,
        in_ninth: Collection[str] = (),
    ) -> None:
        self._configuration, self.in_ninth = configuration, frozenset(in_ninth)
        word, words = configuration.weight_word_bytes, configuration.weight_words
        self._weights = Store("weight memory", word, words, shares=shares)
        self._parameters = self._weights
        if configuration.ninth_bits:
            name = "ninth bits of the weight memory"
            self._parameters = Store(name, word // 8, words, shares=shares)
        elif configuration.traits.has_parameter_memory:
            unit, words = configuration.parameter_bytes, configuration.parameter_words
            self._parameters = Store("parameter memory", unit, words, shares=shares)

    @property
    def words(self) -> tuple[int, int]:
        """Words in use: of the weight memory, and of what holds the parameters."""
        return self._weights.units, self._parameters.units

    def add_weights(self, words: np.ndarray, layer: str) -> int:
        """The weight address of these words, int8 (words, W, C)."""
        if layer not in self.in_ninth:
            return self._weights.add(words.tobytes(), layer)
        cells = words.view(np.uint8).reshape(len(words), -1)
        # bit k of every byte is in word k of eight
        bits = np.unpackbits(cells[..., None], axis=2, bitorder="little").swapaxes(1, 2)
        return self._parameters.add(np.packbits(bits, bitorder="little").tobytes(), layer)

    def add_table(self, table: np.ndarray, layer: str) -> tuple[int, int]:
        """(address, words) of a table in weight memory: int32, 256 entries per half."""
        word = self._configuration.weight_word_bytes
        data = stored_table(table, self._configuration).astype("<i4").tobytes()
        # a word may hold more than one half
        data = data.ljust(-(-len(data) // word) * word, b"\0")
        return self._weights.add(data, layer), len(data) // word

    def add_parameters(self, values: Requantization, first: int, count: int, layer: str) -> int:
        """The parameter address of ``count`` channels from ``first`` on, at most C."""
        entries = np.zeros(self._configuration.columns, _PARAMETER)
        entries["shift"] = _IDLE_SHIFT
        for name in ("bias", "multiplier", "shift"):
            entries[name][:count] = getattr(values, name)[first : first + count]
        return self._add(entries, count, layer)

    def add_single(self, values: Requantization, layer: str) -> int:
        """The parameter address of one entry for all lanes."""
        entries = np.zeros(self._configuration.columns, _PARAMETER)
        for name in ("bias", "multiplier", "shift"):
            entries[name] = getattr(values, name)[0]
        return self._add(entries, 1, layer)

    def _add(self, entries: np.ndarray, count: int, layer: str) -> int:
        """The address of a block of C entries; a compact engine keeps only those that it uses."""
        configuration = self._configuration
        if configuration.traits.has_parameter_memory:
            return self._parameters.add(entries[:count].tobytes(), layer)
        data = np.frombuffer(entries.tobytes(), np.uint8).reshape(configuration.columns, -1)
        rows = configuration.parameter_block_words * configuration.weight_rows
        if configuration.ninth_bits:
            bits = np.unpackbits(data, axis=1, bitorder="little").T
            assert bits.shape == (PARAMETER_BITS, configuration.columns)
            return self._parameters.add(np.packbits(bits, bitorder="little").tobytes(), layer)
        block = np.zeros((rows, configuration.columns), np.uint8)
        block[: data.shape[1]] = data.T
        return self._parameters.add(block.tobytes(), layer)

    def all(self) -> tuple[Image, ...]:
        """The images to load; CapacityError if a memory is too small."""
        self._weights.check()
        self._parameters.check()
        contents = {Space.WEIGHTS: bytes(self._weights.data)}
        if self._configuration.dram:
            # the DMA writes groups of cells, and words may be of half a group
            contents[Space.WEIGHTS] += bytes(-len(self._weights.data) % GROUP_CELLS)
        if self._configuration.ninth_bits:
            contents[Space.WEIGHTS] = self._joined()
        if self._configuration.traits.has_parameter_memory:
            contents[Space.PARAMETERS] = bytes(self._parameters.data)
        return tuple(Image(int(space), 0, data) for space, data in contents.items() if data)

    def _joined(self) -> bytes:
        """Words with their ninth bits: cells of 9 bits, eight of them in 9 bytes."""
        cells = max(self.words) * self._configuration.weight_word_bytes
        data, ninth = np.zeros(cells, np.uint8), np.zeros(cells // 8, np.uint8)
        data[: len(self._weights.data)] = np.frombuffer(self._weights.data, np.uint8)
        ninth[: len(self._parameters.data)] = np.frombuffer(self._parameters.data, np.uint8)
        bits = np.empty((cells, _CELL_BITS), np.uint8)
        bits[:, :-1] = np.unpackbits(data, bitorder="little").reshape(cells, 8)
        bits[:, -1] = np.unpackbits(ninth, bitorder="little")
        return np.packbits(bits, bitorder="little").tobytes()

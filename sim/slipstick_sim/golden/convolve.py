"""Golden model of CONVOLVE: windows as a matrix, and its product with the weights."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration

from .arithmetic import arithmetic_of
from .array import tile_rows
from .depthwise import check_depthwise, depthwise_gather, depthwise_weights
from .gather import WindowGather
from .windows import congruent, lane_offsets, lanes, window_vectors

__all__ = ["PreparedConvolve", "convolve", "lanes", "window_vectors"]

_BLOCK_ELEMENTS = 1 << 18
"""Elements of the window matrix made at a time: 1 MiB of float32, about a second-level cache."""


class PreparedConvolve:
    """All of a CONVOLVE that depends on instruction and weights only; reusable while they stay.

    Parameters
    ----------
    instruction : mapping
        Field values as ``isa.unpack`` gives them.
    weights : array of int8, (words, W, C)
        The weight memory. It is copied from, not kept.
    configuration : Configuration
    ninth : array of uint8, the same shape, optional
        Ninth bits, if an instruction takes its weights from them.

    Raises
    ------
    ValueError
        If the instruction breaks a rule of the instruction set: empty loops, weights or
        accumulators out of range, weights on idle lanes, lanes that the banks cannot deliver,
        whole words of channels that are none, what depthwise instructions may not have.
    """

    def __init__(
        self,
        instruction: Mapping[str, int],
        weights: np.ndarray,
        configuration: Configuration,
        ninth: np.ndarray | None = None,
    ) -> None:
        self._arithmetic = arithmetic_of(configuration)
        depthwise = bool(instruction.get("depthwise"))
        if depthwise:
            check_depthwise(instruction, configuration)
        reduction = lanes(instruction, configuration)
        self._rows, self._groups = instruction["rows"], instruction["groups"]
        self._accumulate = bool(instruction["accumulate"])
        _check_within(
            "accumulators of CONVOLVE",
            0,
            self._rows * self._groups,
            configuration.accumulator_depth >> instruction.get("parts", 0),
        )
        self.weight_words = weight_range(instruction, configuration)
        first, end = self.weight_words.start, self.weight_words.stop
        _check_whole_words(instruction, configuration)
        _check_within("weight words of CONVOLVE", first, end, len(weights))
        words = weights[first:end]
        if instruction.get("from_ninth"):
            words = _from_ninth(instruction, ninth, first, end)
        matrix = _weight_matrix(words, instruction, configuration)
        if instruction.get("pairs"):
            matrix = matrix.copy()
            _fold_pairs(matrix, configuration.rows)
        if depthwise:
            matrix = depthwise_weights(matrix, configuration)
            self._weights = matrix.astype(self._arithmetic.operand)
            self._gather = depthwise_gather(instruction, configuration)
            return
        used = _used_lanes(reduction, matrix)
        offsets = lane_offsets(instruction, reduction)
        _check_lanes(used, reduction, offsets, configuration)
        ky, kx, _, _ = reduction
        self._weights = np.ascontiguousarray(
            matrix[used.reshape(-1)], dtype=self._arithmetic.operand
        )
        columns = self._groups * configuration.pixels
        self._gather = WindowGather(instruction, columns, ky[used], kx[used], offsets[used])

    @property
    def nbytes(self) -> int:
        """Counts the bytes of its weights, which are nearly all that it holds."""
        return self._weights.nbytes

    def __call__(
        self, activations: np.ndarray, accumulators: np.ndarray, scratch: "Scratch | None" = None
    ) -> None:
        """Writes ``accumulators`` (batch, depth, P, C) from ``activations`` (batch, bytes).

        With ``accumulate`` it adds to them, modulo 2^32.
        """
        rows, columns, reduction = self._gather.shape
        scratch = scratch or Scratch()
        images = max(1, _BLOCK_ELEMENTS // max(1, rows * columns * reduction))
        for first in range(0, len(activations), images):
            block = activations[first : first + images]
            shape = len(block), rows, columns, reduction
            matrix = scratch.matrix(self._arithmetic.operand, *shape)
            self._gather(block, matrix)
            results = accumulators[first : first + images, : self._rows * self._groups]
            flat = matrix.reshape(len(block) * rows * columns, reduction)
            self._arithmetic.multiply(flat, self._weights, results, self._accumulate)


class Scratch:
    """Memory for window matrices, kept between instructions so that its pages stay mapped."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)

    def matrix(self, element: Any, *shape: int) -> np.ndarray:
        """An array of this type and shape, with any content; it ends the life of the last one."""
        size = math.prod(shape) * np.dtype(element).itemsize
        if self._buffer.size < size:
            self._buffer = np.empty(size, np.uint8)
        return self._buffer[:size].view(element).reshape(shape)


def convolve(
    instruction: Mapping[str, int],
    weights: np.ndarray,
    activations: np.ndarray,
    accumulators: np.ndarray,
    configuration: Configuration,
    ninth: np.ndarray | None = None,
) -> None:
    """CONVOLVE: windows of activation memory times weights, into accumulators.

    Parameters
    ----------
    instruction : mapping
        Field values as ``isa.unpack`` gives them.
    weights : array of int8, (words, W, C)
        The weight memory.
    activations : array of int8, (batch, bytes), C-contiguous
    accumulators : array of int32, (batch, depth, P, C)
        The bank that the instruction names; written.
    configuration : Configuration
    ninth : array of uint8, (words, W, C), optional

    Raises
    ------
    ValueError
        As :class:`PreparedConvolve`; also if a byte inside the input lies outside the memory.
    """
    PreparedConvolve(instruction, weights, configuration, ninth)(activations, accumulators)


def weight_range(instruction: Mapping[str, int], configuration: Configuration) -> range:
    """Words of the weight memory that a CONVOLVE reads."""
    first, words = instruction["weight_address"], instruction["reduction_tiles"]
    if not instruction["diagonal"]:
        words *= configuration.tile_words
    return range(first, first + words * (8 if instruction.get("from_ninth") else 1))


def _from_ninth(
    instruction: Mapping[str, int], ninth: np.ndarray | None, first: int, end: int
) -> np.ndarray:
    """Words of which each byte is the ninth bits of eight, from bit 0 up."""
    if ninth is None or instruction["diagonal"]:
        raise ValueError("from_ninth must be 0 without ninth_bits and with diagonal, not 1")
    bits = ninth[first:end].reshape(-1, 8, *ninth.shape[1:])
    return np.packbits(bits, axis=1, bitorder="little")[:, 0].view(np.int8)


def _check_within(name: str, low: int, high: int, size: int) -> None:
    if low < 0 or high > size:
        raise ValueError(f"{name} must lie within 0..{size}, not {low}..{high}")


def _check_whole_words(instruction: Mapping[str, int], configuration: Configuration) -> None:
    channels, width = instruction["channels"], configuration.weight_rows
    if instruction.get("whole_words") and channels % width:
        raise ValueError(
            f"channels of CONVOLVE must be a multiple of weight_rows ({width}) with whole_words,"
            f" not {channels}"
        )


def _weight_matrix(
    words: np.ndarray, instruction: Mapping[str, int], configuration: Configuration
) -> np.ndarray:
    """Weights of every lane, int8 (tiles x R, C).

    A diagonal is written out in full: its product is R times the work, of which a BLAS does more
    in the same time than elementwise loops over short vectors do of their own.
    """
    rows, columns, length = configuration.rows, configuration.columns, configuration.tile_words
    if not instruction["diagonal"]:
        tiles = words.reshape(-1, length, *words.shape[1:])
        return tile_rows(tiles).reshape(-1, columns)
    matrix = np.zeros((len(words), rows, columns), np.int8)
    row = np.arange(rows)
    matrix[:, row, row % columns] = words[:, row // length, row % columns]
    return matrix.reshape(-1, columns)


def _fold_pairs(matrix: np.ndarray, rows: int) -> None:
    """Clears the second half of the first tile, which is the same as the first."""
    first, second = matrix[: rows // 2], matrix[rows // 2 : rows]
    if (first != second).any():
        row = int(np.argwhere((first != second).any(axis=1))[0, 0])
        raise ValueError(
            f"weights of rows {row} and {row + rows // 2} of the first tile must be the same with"
            " pairs"
        )
    second[...] = 0


def _used_lanes(reduction: tuple[np.ndarray, ...], matrix: np.ndarray) -> np.ndarray:
    """Lanes that can change a result, bool (tiles, R): all of a tap, or none if its weights are 0.

    Whole taps, as single lanes left out would break the runs of bytes that are copied at once.
    """
    ky, kx, _, counts = reduction
    weighted = matrix.any(axis=1).reshape(counts.shape)
    tap = ky * (int(kx.max()) + 1) + kx
    useful = np.zeros(int(tap.max()) + 1, bool)
    useful[tap[weighted & counts]] = True
    idle = weighted & ~counts
    if idle.any():
        tile, lane = np.argwhere(idle)[0]
        raise ValueError(
            f"weights of idle lanes must be zero, not those of tile {tile} lane {lane}"
        )
    return counts & useful[tap]


def _check_lanes(
    used: np.ndarray,
    reduction: tuple[np.ndarray, ...],
    offsets: np.ndarray,
    configuration: Configuration,
) -> None:
    wrong = used & ~congruent(offsets, configuration)
    if wrong.any():
        tile, lane = np.argwhere(wrong)[0]
        ky, kx, c, _ = (int(part[tile, lane]) for part in reduction)
        raise ValueError(
            f"lane {lane} of tile {tile} (ky {ky}, kx {kx}, channel {c}) must lie at lane 0's"
            f" address plus {lane}, modulo {configuration.banks}, not at"
            f" {offsets[tile, lane] - offsets[tile, 0]:+d}"
        )

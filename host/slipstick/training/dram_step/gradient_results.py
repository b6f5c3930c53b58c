"""Describes how the sums of a layer's gradients lie on the chip, and what becomes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    MASTER_WORDS,
    SUM_BYTES,
    WORD_BYTES,
    Operation,
    Transfer,
)

from ...compiler.mapping.activation_layout import round_up
from ...devices.link.regions import pieces
from ...runtime.dram_port import LONGEST_RUN
from .gradient_layout import GradientPiece

_LONGEST_PITCH = (1 << 16) - 1
"""Bytes from plane to plane of an UPDATE."""


@dataclass(frozen=True)
class Masters:
    """Master rows of a layer, in the order in which the sums of its gradient lie on the chip.

    Parameters
    ----------
    place : int
        The word of DRAM of the first one.
    shift : int
        Of the update, 0..32.
    """

    place: int
    shift: int


@dataclass(frozen=True)
class GradientResults:
    """The sums of a layer's gradients: for each piece, a plane per byte of 32 bits.

    A plane has the piece's pixels one after the other, and in each a byte per channel of the
    errors.

    Parameters
    ----------
    passes : sequence of sequence of GradientPiece
    shape : (O, kernel height, kernel width, I), or (1, kernel height, kernel width, C)
        Of the weights; the latter of a depthwise layer.
    grid : bool
        The array's columns are the image's rows.
    configuration : Configuration
    depthwise : bool
        Sums of a channel of the input with another one of the errors are there, too, and of no use.
    """

    passes: Sequence[Sequence[GradientPiece]]
    shape: tuple[int, int, int, int]
    grid: bool
    configuration: Configuration
    depthwise: bool = False

    @property
    def _channels(self) -> int:
        """Counts the channels of the errors."""
        return self.shape[3] if self.depthwise else self.shape[0]

    def size(self, piece: GradientPiece) -> tuple[int, int, int]:
        """Returns rows, columns and bytes per pixel of a piece's result."""
        rows, columns = piece.size
        if self.grid:
            rows, columns = columns, rows
        return rows, columns, round_up(self._outputs(piece), self.configuration.lanes)

    def _outputs(self, piece: GradientPiece) -> int:
        columns = self.configuration.columns
        return min(columns, self._channels - piece.tile * columns)

    def plane_bytes(self, piece: GradientPiece) -> int:
        """Counts the bytes of a plane of a piece's result: one per sum."""
        rows, columns, pitch = self.size(piece)
        return rows * columns * pitch

    def pass_bytes(self, some: Sequence[GradientPiece]) -> int:
        """Counts the bytes of a pass's results on the chip."""
        return sum(SUM_BYTES * self.plane_bytes(piece) for piece in some)

    @property
    def words(self) -> int:
        """Counts the words of DRAM for the results of all passes."""
        return sum(self.pass_words(some) for some in self.passes)

    def pass_words(self, some: Sequence[GradientPiece]) -> int:
        """Counts the words of DRAM for the results of a pass."""
        return _words(self.pass_bytes(some))

    def stores(self, some: Sequence[GradientPiece], chip: int, dram: int) -> Iterator[Transfer]:
        """Brings the results of a pass to DRAM.

        Parameters
        ----------
        some : sequence of GradientPiece
        chip : int
            The first byte on the chip.
        dram : int
            The word for it.
        """
        yield from _stores(chip, dram, self.pass_bytes(some))

    @property
    def can_update(self) -> bool:
        """The DMA can update the weights: planes are whole words."""
        planes = [self.plane_bytes(piece) for piece in self._weight_pieces()]
        return all(size % WORD_BYTES == 0 and size <= _LONGEST_PITCH for size in planes)

    def _weight_pieces(self) -> Iterator[GradientPiece]:
        return (piece for some in self.passes for piece in some if not piece.is_bias)

    @property
    def master_words(self) -> int:
        """Counts the words of master rows: one row per eight sums, also where no weight is."""
        return _row_words(self.sums_count)

    @property
    def sums_count(self) -> int:
        """Counts the sums of weights, also where no weight is."""
        return sum(map(self.plane_bytes, self._weight_pieces()))

    def sum_numbers(self) -> np.ndarray:
        """Numbers each weight's sum: an array of ``shape``."""
        numbers, first = np.zeros(self.shape, np.int32), 0
        for piece in self._weight_pieces():
            count = self.plane_bytes(piece)
            self._put(piece, np.arange(first, first + count, dtype=np.int32), numbers)
            first += count
        return numbers

    def updates(
        self, some: Sequence[GradientPiece], chip: int, dram: int, masters: Masters
    ) -> Iterator[Transfer]:
        """Updates the weights that a pass has the sums for, and brings those of biases to DRAM.

        Parameters
        ----------
        some : sequence of GradientPiece
            One of the passes.
        chip : int
            The first byte on the chip.
        dram : int
            The word for the biases.
        masters : Masters
        """
        before = self.passes[: self.passes.index(some)]
        done = (piece for each in before for piece in each if not piece.is_bias)
        word = masters.place + _row_words(sum(map(self.plane_bytes, done)))
        for piece in some:
            plane = self.plane_bytes(piece)
            if piece.is_bias:
                yield from _stores(chip, dram, SUM_BYTES * plane)
                dram += _words(SUM_BYTES * plane)
            else:
                yield Transfer(
                    operation=Operation.UPDATE,
                    chip=chip,
                    dram=word,
                    run_bytes=WORD_BYTES,
                    runs=SUM_BYTES,
                    rows=plane // WORD_BYTES,
                    chip_run_pitch=plane,
                    chip_row_pitch=WORD_BYTES,
                    shift=masters.shift,
                )
                word += _row_words(plane)
            chip += SUM_BYTES * plane

    def bias_words(self, some: Sequence[GradientPiece]) -> int:
        """Counts the words of DRAM for a pass's sums of biases, as ``updates`` brings them."""
        return sum(_words(SUM_BYTES * self.plane_bytes(piece)) for piece in some if piece.is_bias)

    def biases(self, packed: bytes) -> np.ndarray:
        """The gradient of the bias, (O,), in what ``updates`` has brought, pass by pass."""
        bias, begin = np.zeros(self._channels, np.int32), 0
        for piece in (piece for some in self.passes for piece in some if piece.is_bias):
            count = SUM_BYTES * self.plane_bytes(piece)
            self._put_bias(piece, _values(packed[begin : begin + count]), bias)
            begin += _words(count) * WORD_BYTES
        return bias

    def sums(self, packed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """The gradients in what ``stores`` has brought.

        Parameters
        ----------
        packed : bytes
            ``words`` words.

        Returns
        -------
        weights : array of int32, of ``shape``
        bias : array of int32, (O,)
        """
        weights, bias = np.zeros(self.shape, np.int32), np.zeros(self._channels, np.int32)
        place = 0
        for some in self.passes:
            begin = place
            for piece in some:
                count = SUM_BYTES * self.plane_bytes(piece)
                values = _values(packed[begin : begin + count])
                if piece.is_bias:
                    self._put_bias(piece, values, bias)
                else:
                    self._put(piece, values, weights)
                begin += count
            place += self.pass_words(some) * WORD_BYTES
        return weights, bias

    def _put_bias(self, piece: GradientPiece, values: np.ndarray, bias: np.ndarray) -> None:
        first, outputs = piece.tile * self.configuration.columns, self._outputs(piece)
        bias[first : first + outputs] = values[:outputs]

    def _put(self, piece: GradientPiece, values: np.ndarray, weights: np.ndarray) -> None:
        """Puts what lies in a plane's order where the weights have it."""
        first, outputs = piece.tile * self.configuration.columns, self._outputs(piece)
        channels = slice(piece.channels.start, piece.channels.stop)
        values = values.reshape(self.size(piece))[..., :outputs]
        if self.grid:
            values = values.transpose(1, 0, 2)
        if self.depthwise:
            self._put_depthwise(piece, values, weights)
            return
        if piece.turned:
            some_columns = weights[first : first + outputs, :, piece.columns[0], channels]
            some_columns[...] = values.transpose(2, 0, 1)
            return
        columns = slice(piece.columns.start, piece.columns.stop, piece.columns.step)
        some_rows = weights[first : first + outputs, piece.rows[0], columns, channels]
        some_rows[...] = values.transpose(2, 1, 0)

    def _put_depthwise(self, piece: GradientPiece, values: np.ndarray, weights: np.ndarray) -> None:
        """Puts what a plane has of channels with themselves."""
        first, count = piece.tile * self.configuration.columns, len(piece.channels)
        own = np.arange(count), np.array(piece.channels) - first
        channels = slice(piece.channels.start, piece.channels.stop)
        if piece.turned:
            weights[0, :, piece.columns[0], channels] = values[:, own[0], own[1]]
            return
        columns = slice(piece.columns.start, piece.columns.stop, piece.columns.step)
        weights[0, piece.rows[0], columns, channels] = values[own[0], :, own[1]].T


def _stores(chip: int, dram: int, count: int) -> Iterator[Transfer]:
    """STOREs of bytes that lie one after the other."""
    for first, end in pieces(count, LONGEST_RUN):
        yield Transfer(
            operation=Operation.STORE,
            chip=chip + first,
            dram=dram + first // WORD_BYTES,
            run_bytes=end - first,
        )


def _row_words(sums: int) -> int:
    """Counts the words of master rows for so many sums."""
    return MASTER_WORDS * sums // GROUP_CELLS


def _words(count: int) -> int:
    """Counts the words of DRAM for so many bytes."""
    return -(-count // WORD_BYTES)


def _values(planes: bytes) -> np.ndarray:
    """Sums of 32 bits, whose planes of bytes lie one after the other."""
    stacked = np.frombuffer(planes, np.uint8).reshape(SUM_BYTES, -1)
    return np.ascontiguousarray(stacked.T).view("<i4").reshape(-1)

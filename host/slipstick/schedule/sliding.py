"""Depthwise convolutions whose kernel slides along a side of the input, a channel a column.

The array is fed four input rows at a time, column after column of them, and makes two output rows;
or, as rows and columns are alike to it, four columns, row after row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import DEPTHWISE_KERNEL, DEPTHWISE_TAPS, Configuration
from slipstick_rtl.isa import MATRIX_FIELDS

from .operations import Convolution

LARGEST_SKIP = (1 << MATRIX_FIELDS["skip"].width) - 1

_LANE_GROUPS = 2
"""Of C lanes each: a stream column takes so many cycles."""


@dataclass(frozen=True)
class Sliding:
    """How a kernel slides.

    Parameters
    ----------
    along : int
        The side that is streamed, 0 for y and 1 for x: the instruction's columns lie along it.
    skip : int
        Stream columns from an output column to the next.
    """

    along: int
    skip: int

    @property
    def across(self) -> int:
        """The other side."""
        return 1 - self.along

    def vectors(self, sides: tuple[int, int]) -> int:
        """Cycles for so many output rows and columns."""
        return sliding_vectors(sides[self.across], sides[self.along], self.skip)

    def exchanged(self, pair: tuple[int, int]) -> tuple[int, int]:
        """What belongs to the instruction's rows and columns, of a pair (y, x)."""
        return pair[self.across], pair[self.along]

    def fields(self, convolution: Convolution, pitches: tuple[int, int]) -> dict[str, int]:
        """The steps of an instruction over an input of these pitches (row, pixel)."""
        across, along = self.exchanged(pitches)
        stride, _ = self.exchanged(convolution.stride)
        dilation_across, dilation_along = self.exchanged(convolution.dilation)
        return {
            "depthwise": 1,
            "skip": self.skip,
            "tap_step_y": dilation_across * across,
            "dilation_y": dilation_across,
            "row_step": stride * across,
            "stride_y": stride,
            "column_step": dilation_along * along,
            "stride_x": dilation_along,
            "kernel_x": 1,
            "tap_step_x": 0,
            "dilation_x": 1,
        }

    def words(self, taps: np.ndarray, configuration: Configuration) -> np.ndarray:
        """The tile, int8 (R, C), of weights int8 (channels, kernel_y, kernel_x)."""
        placed = np.zeros((configuration.columns, DEPTHWISE_KERNEL, DEPTHWISE_KERNEL), np.int8)
        turned = taps.transpose(0, 1 + self.across, 1 + self.along)
        channels, rows, columns = turned.shape
        placed[:channels, :rows, :columns] = turned
        lanes = np.zeros((configuration.rows, configuration.columns), np.int8)
        first = configuration.packed_rows
        lanes[first : first + DEPTHWISE_TAPS] = placed.reshape(configuration.columns, -1).T
        return lanes


def sliding_vectors(rows: int, groups: int, skip: int) -> int:
    """Cycles of a depthwise instruction: two output rows at a time, if every column is one's."""
    blocks = -(-rows // 2) if skip == 1 else rows
    return blocks * ((groups - 1) * skip + DEPTHWISE_KERNEL) * _LANE_GROUPS


def slidings(
    convolution: Convolution, configuration: Configuration, pitches: tuple[int, int] | None = None
) -> Iterator[Sliding]:
    """The ways in which its kernel may slide, if its input has these pitches (row, pixel); with
    the right pitches, if none are given."""
    whole = convolution.is_diagonal and not convolution.is_partial
    if not configuration.takes_depthwise or not whole:
        return
    if max(convolution.kernel) > DEPTHWISE_KERNEL:
        return
    for along in (1, 0):
        across = 1 - along
        stride, dilation = convolution.stride, convolution.dilation
        skip, rest = divmod(stride[along], dilation[along])
        if rest or skip > LARGEST_SKIP:
            continue
        # the second row of a block is where the next row of the kernel is
        if skip == 1 and stride[across] != dilation[across]:
            continue
        pitch = configuration.columns if pitches is None else pitches[across]
        if (dilation[across] * pitch - configuration.columns) % configuration.rows == 0:
            yield Sliding(along, skip)


def fewest_cycles(convolution: Convolution, configuration: Configuration) -> int | None:
    """Of a tile of channels, with the right pitches; None if its kernel cannot slide."""
    sides = convolution.output.height, convolution.output.width
    return min((way.vectors(sides) for way in slidings(convolution, configuration)), default=None)

"""Depthwise convolutions whose kernel slides along a side of the input, a channel a column.

The array is fed four input rows at a time, column after column of them, and makes two output rows;
or, as rows and columns are alike to it, four columns, row after row. With stride 2 it makes two
output rows of five input rows, of which it keeps the last for the next two: if that dimension is
not cut, and begins or ends in padding, as what is kept before the first two is padding.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import DEPTHWISE_KERNEL, DEPTHWISE_TAPS, Configuration
from slipstick_rtl.isa import KEPT_COLUMNS, MATRIX_FIELDS

from ..ir.operations import Convolution

Span = tuple[int, int]

LARGEST_SKIP = (1 << MATRIX_FIELDS["skip"].width) - 1

KEPT_SIDE = (KEPT_COLUMNS - DEPTHWISE_KERNEL) // 2 + 1
"""Longest side of a tile's output along the stream, where rows are kept."""

_LANE_GROUPS = 2
"""Groups of C lanes each: a stream column takes so many cycles."""

_STEP_MODULUS = 1 << MATRIX_FIELDS["row_step"].width
"""Steps backwards are as good as steps forwards: addresses wrap."""


@dataclass(frozen=True)
class Sliding:
    """Describes how a kernel slides.

    Parameters
    ----------
    along : int
        The side that is streamed, 0 for y and 1 for x: the instruction's columns lie along it.
    skip : int
        Stream columns from an output column to the next.
    keeps : bool
        The array keeps input rows.
    backwards : bool
        The other side is gone through from its end.
    joins : bool
        The side that is streamed has padding before and behind it: where it is not cut, one stream
        column is both.
    """

    along: int
    skip: int
    keeps: bool = False
    backwards: bool = False
    joins: bool = False

    @property
    def across(self) -> int:
        """The other side."""
        return 1 - self.along

    def vectors(self, sides: tuple[int, int]) -> int:
        """Cycles for so many output rows and columns."""
        across, along = sides[self.across], sides[self.along]
        if not self.keeps:
            return sliding_vectors(across, along, self.skip, joined=self.joins)
        pieces = -(-along // KEPT_SIDE)
        length, longer = divmod(along, pieces)
        counts = ((length + 1, longer), (length, pieces - longer))
        return sum(n * sliding_vectors(across, size, self.skip, keeps=True) for size, n in counts)

    def exchanged(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Turns a pair (y, x) into the values for the instruction's rows and columns."""
        return pair[self.across], pair[self.along]

    def fields(self, convolution: Convolution, pitches: tuple[int, int]) -> dict[str, int]:
        """The steps of an instruction over an input of these pitches (row, pixel)."""
        across, along = self.exchanged(pitches)
        stride, _ = self.exchanged(convolution.stride)
        dilation_across, dilation_along = self.exchanged(convolution.dilation)
        if self.backwards:
            across = -across
        return {
            "depthwise": 1,
            "skip": self.skip,
            "tap_step_y": dilation_across * across,
            "dilation_y": dilation_across,
            "row_step": stride * across % _STEP_MODULUS,
            "kept_rows": self.keeps,
            "stride_y": stride,
            "column_step": dilation_along * along,
            "stride_x": dilation_along,
            "kernel_x": 2 if convolution.apart else 1,
            "tap_step_x": convolution.apart * along,
            "dilation_x": convolution.apart or 1,
        }

    def origin(self, convolution: Convolution, spans: tuple[Span, Span]) -> tuple[int, int]:
        """Row and column of the first input that is read for a part of the output."""
        first = [
            span[0] * stride - padding
            for span, stride, padding in zip(
                spans, convolution.stride, convolution.padding, strict=True
            )
        ]
        side = self.across
        if self.keeps:
            # the row before it is what would be kept
            first[side] += convolution.dilation[side]
        if self.backwards:
            first[side] += (spans[side][1] - 1 - spans[side][0]) * convolution.stride[side]
        return first[0], first[1]

    def words(self, taps: np.ndarray, configuration: Configuration) -> np.ndarray:
        """The tile, int8 (R, C), of weights int8 (channels, kernel_y, kernel_x)."""
        placed = np.zeros((configuration.columns, DEPTHWISE_KERNEL, DEPTHWISE_KERNEL), np.int8)
        turned = taps.transpose(0, 1 + self.across, 1 + self.along)
        turned = turned[:, ::-1] if self.backwards else turned
        channels, rows, columns = turned.shape
        placed[:channels, :rows, :columns] = turned
        lanes = np.zeros((configuration.rows, configuration.columns), np.int8)
        first = configuration.packed_rows
        lanes[first : first + DEPTHWISE_TAPS] = placed.reshape(configuration.columns, -1).T
        return lanes


def sliding_vectors(
    rows: int, groups: int, skip: int, *, keeps: bool = False, joined: bool = False
) -> int:
    """Cycles of a depthwise instruction: two output rows at a time, if every column is one's or
    input rows are kept."""
    blocks = -(-rows // 2) if skip == 1 or keeps else rows
    columns = blocks * ((groups - 1) * skip + DEPTHWISE_KERNEL)
    return _LANE_GROUPS * (columns - joined * (blocks - 1))


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
    if convolution.apart and pitches is not None:
        distance = convolution.apart * pitches[1]
        if (distance - configuration.columns // 2) % configuration.banks:
            return
    for along in (1,) if convolution.apart else (1, 0):
        across = 1 - along
        stride, dilation = convolution.stride, convolution.dilation
        skip, rest = divmod(stride[along], dilation[along])
        if rest or skip > LARGEST_SKIP:
            continue
        # the second row of a block is where the next row of the kernel is
        if skip == 1 and stride[across] != dilation[across]:
            continue
        joins = skip == 1 and not convolution.apart and all(_padded_ends(convolution, along))
        ways = [Sliding(along, skip, joins=joins), *_kept(convolution, configuration, along)]
        for way in ways:
            if pitches is None:
                yield way
                continue
            # a vector has bytes of two rows, C banks apart
            step = dilation[across] * pitches[across] * (-1 if way.backwards else 1)
            if (step - configuration.columns) % configuration.banks == 0:
                yield way


def _padded_ends(convolution: Convolution, side: int) -> tuple[bool, bool]:
    """Tells whether a kernel of 3 begins in padding along a side, and ends there, at its ends."""
    size = (convolution.input.height, convolution.input.width)[side]
    count = (convolution.output.height, convolution.output.width)[side]
    last = (count - 1) * convolution.stride[side] + 2 * convolution.dilation[side]
    before = convolution.padding[side]
    return before > 0, last - before >= size


def _kept(convolution: Convolution, configuration: Configuration, along: int) -> Iterator[Sliding]:
    """The same with rows that are kept, where that can be."""
    across = 1 - along
    stride, dilation = convolution.stride, convolution.dilation
    sides = convolution.output.height, convolution.output.width
    if any(stride[side] != 2 * dilation[side] for side in (0, 1)):
        return
    if convolution.kernel[across] != DEPTHWISE_KERNEL:
        return
    if convolution.input_zero_point != configuration.kept_padding:
        return
    # the side across is not cut
    if (
        sides[across] * min(sides[along], KEPT_SIDE if along else 1)
        > configuration.accumulator_depth
    ):
        return
    before, behind = _padded_ends(convolution, across)
    if before or behind:
        yield Sliding(along, 2, keeps=True, backwards=not before)


def fewest_cycles(convolution: Convolution, configuration: Configuration) -> int | None:
    """Finds the fewest cycles of a tile of channels, with the right pitches.

    None if its kernel cannot slide.
    """
    sides = convolution.output.height, convolution.output.width
    return min((way.vectors(sides) for way in slidings(convolution, configuration)), default=None)

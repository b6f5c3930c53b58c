"""Places what a weight gradient reads on the chip, and shares its sums out to the accumulators."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...compiler.mapping.reduction import LARGEST_KERNEL_WIDTH
from ...devices.link.regions import pieces
from ...errors import CapacityError
from .kernels import cuts_of

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""


@dataclass(frozen=True)
class GradientPiece:
    """Sums in a bank of accumulators: for rows or columns of the kernel, or for the bias.

    Parameters
    ----------
    rows, columns : range
        Of the kernel; one of them is a single one. None and one for the bias.
    channels : range
        Of the layer's input; one for the bias.
    tile : int
        Of the errors' channels.
    turned : bool
        Accumulators hold all channels for each row of the kernel, otherwise all columns of the
        kernel for each channel.
    """

    rows: range
    columns: range
    channels: range
    tile: int
    turned: bool = False

    @property
    def is_bias(self) -> bool:
        """It is the gradient of the bias."""
        return not self.rows

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of its result."""
        if self.turned:
            return len(self.rows), len(self.channels)
        return len(self.channels), len(self.columns)


@dataclass(frozen=True)
class Grid:
    """Lanes as pixels, where an image's rows have no gaps between pixels.

    Lane r is the pixel r mod Y rows down and r div Y columns across.

    Parameters
    ----------
    rows, columns : int
        Y, and R / Y.
    """

    rows: int
    columns: int


@dataclass(frozen=True)
class GradientImage:
    """A layer's input on the chip, for its weight gradient.

    Parameters
    ----------
    phases : sequence of int
        The image is cut by its columns modulo the stride: the first column of each part.
    pixel_pitch, row_pitch : int
        Of these parts.
    row_stride : int
        Rows of the image from one that is loaded to the next: others are not needed.
    rows : int
        That are needed.
    aligned : bool
        Each row of errors must begin with a tile of lanes.
    stripe_rows : int
        Rows of errors that must be a multiple of it to begin with a tile of lanes.
    grid : Grid, optional
        Rows are as in DRAM; otherwise each pixel of a row is a lane behind the one before.
    """

    phases: Sequence[int]
    pixel_pitch: int
    row_pitch: int
    row_stride: int
    rows: int
    aligned: bool
    stripe_rows: int
    grid: Grid | None = None


@dataclass(frozen=True)
class Stripe:
    """Rows of errors, and the rows of the image that they meet.

    Parameters
    ----------
    errors, image : range
        The image's rows are those that are needed, one after the other.
    """

    errors: range
    image: range


@dataclass(frozen=True)
class GradientPlaces:
    """The places on the chip of what a pass reads and writes.

    Parameters
    ----------
    image, ones, results : int
        First bytes in the activation memory.
    constants, kernels : int
        First words in the weight memory.
    """

    image: int
    ones: int
    results: int
    constants: int
    kernels: int


def lay_image(
    image: Shape, errors: Shape, window: "Window", configuration: Configuration
) -> GradientImage:
    """Lays an image out on the chip.

    Parameters
    ----------
    image, errors : (height, width, channels)
    window : Window
    configuration : Configuration
    """
    (height, width, channels), (rows, columns, _) = image, errors
    if (grid := find_grid(image, errors, window, configuration)) is not None:
        pixel = round_up(channels, WORD_BYTES)
        row = width * pixel + (1 - width * pixel) % configuration.rows
        return GradientImage((0,), pixel, row, 1, height, False, grid.rows, grid)
    stride_y, stride_x = window.stride
    lanes, (top, _, left, _) = configuration.rows, window.padding
    # a kernel of one row meets every so many-th row only
    row_stride = stride_y if window.kernel[0] == 1 and top == 0 else 1
    height, stride_y = -(-height // row_stride), stride_y // row_stride
    # neighbouring pixels are neighbouring lanes
    pixel_pitch = channels + (1 - channels) % lanes
    least = -(-width // stride_x) * pixel_pitch
    counts = {count % lanes for _, count in cuts_of(columns)}
    # rows of errors follow each other if their pixels lie on one lane after the other
    fitting = [
        pitch
        for pitch in range(least, least + lanes)
        if rows == 1 or all((stride_y * pitch - count) % lanes == 0 for count in counts)
    ]
    row_pitch = fitting[0] if fitting else least
    phases = [(tap - left) % stride_x for tap in range(min(stride_x, window.kernel[1]))]
    stripe = 1 if not fitting else math.lcm(*(lanes // math.gcd(lanes, c) for c in counts))
    return GradientImage(
        phases,
        pixel_pitch,
        row_pitch,
        row_stride,
        height,
        aligned=not fitting,
        stripe_rows=stripe,
    )


def find_grid(
    image: Shape, errors: Shape, window: "Window", configuration: Configuration
) -> Grid | None:
    """The grid with which whole rows of an image are loaded, if there is one.

    The distance of two pixels side by side must be Y modulo R, and errors must be whole grids.
    """
    lanes, chain = configuration.rows, configuration.tile_words
    rows = round_up(image[2], WORD_BYTES) % lanes or lanes
    if window.stride != (1, 1) or configuration.pixels > 1 or rows > LARGEST_KERNEL_WIDTH:
        return None
    if image[2] == 1:
        # pixels of a channel may lie side by side in DRAM
        return None
    if lanes % rows or rows % chain:
        return None
    grid = Grid(rows, lanes // rows)
    return None if errors[0] % grid.rows or errors[1] % grid.columns else grid


def share_out(
    window: "Window",
    channels: int,
    tiles: int,
    configuration: Configuration,
    *,
    depthwise: bool = False,
) -> tuple[int, list[list[GradientPiece]]]:
    """Shares sums out to the banks of accumulators, in the fewest passes over the batch.

    Parameters
    ----------
    window : Window
        The layer's.
    channels : int
        Of its input.
    tiles : int
        Of the errors' channels.
    configuration : Configuration
    depthwise : bool
        A tile of errors meets only the same channels of the input.

    Returns
    -------
    parts : int
        What banks there are, as instructions say it.
    passes : list of lists of GradientPiece
        Each has a bank of its own.

    Raises
    ------
    CapacityError
        If a row of the kernel does not fit a bank.
    """
    (kernel_y, kernel_x), stride = window.kernel, window.stride[1]
    widest = -(-len(range(0, kernel_x, stride)) // configuration.pixels)
    if min(widest, kernel_y) > configuration.accumulator_depth:
        raise CapacityError(
            "a row of a kernel must fit accumulator_depth"
            f" ({configuration.accumulator_depth}), not need {widest}"
        )
    columns = configuration.columns
    inputs = [
        range(channels)[tile * columns :][:columns] if depthwise else range(channels)
        for tile in range(tiles)
    ]
    found = None
    for parts in range(configuration.largest_parts + 1):
        words, banks = configuration.accumulator_depth >> parts, 2 << parts
        for turned, least in ((False, widest), (True, kernel_y)):
            if words < least:
                continue
            some = list(_pieces(window, inputs, words, configuration.pixels, turned))
            passes = [some[first : first + banks] for first in range(0, len(some), banks)]
            if found is None or len(passes) < len(found[1]):
                found = parts, passes
    assert found is not None
    return found


def _pieces(
    window: "Window", inputs: Sequence[range], words: int, pixels: int, turned: bool
) -> Iterator[GradientPiece]:
    """Pieces of each tile of errors, which meets these channels of the input."""
    (kernel_y, kernel_x), stride = window.kernel, window.stride[1]
    for tile, channels in enumerate(inputs):
        if turned:
            most = words // kernel_y * pixels
            for column, some in itertools.product(range(kernel_x), pieces(len(channels), most)):
                columns = range(column, column + 1)
                yield GradientPiece(range(kernel_y), columns, channels[slice(*some)], tile, True)
        else:
            for row, first in itertools.product(range(kernel_y), range(min(stride, kernel_x))):
                columns = range(first, kernel_x, stride)
                groups = -(-len(columns) // pixels)
                for some in pieces(len(channels), words // groups):
                    part = channels[slice(*some)]
                    yield GradientPiece(range(row, row + 1), columns, part, tile)
        yield GradientPiece(range(0), range(1), range(1), tile)


def takes_dense_rows(image: DramTensor, window: "Window") -> bool:
    """Returns whether a gradient can read an image as it lies in DRAM.

    Its pixels must begin with a word each, or its rows be what lies on the chip as well.
    """
    return (
        not image.dense
        or image.channels % WORD_BYTES == 0
        or (image.channels == 1 and window.stride[1] == 1)
    )

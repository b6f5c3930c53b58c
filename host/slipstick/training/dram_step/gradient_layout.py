"""Places what a weight gradient reads on the chip, and shares its sums out to the accumulators."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...compiler.mapping.activation_layout import round_up
from ...devices.link.regions import pieces
from ...errors import CapacityError
from ...program.steps import Placement
from .kernels import cuts_of

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""


@dataclass(frozen=True)
class GradientPiece:
    """What a bank of accumulators holds: sums for a row of the kernel, or for the bias.

    Parameters
    ----------
    row : int or None
        Of the kernel; None: the bias.
    columns : range
        Of the kernel; one for the bias.
    channels : range
        Of the layer's input, one per row of accumulators; one for the bias.
    tile : int
        Of the errors' channels.
    """

    row: int | None
    columns: range
    channels: range
    tile: int


@dataclass(frozen=True)
class GradientPlaces:
    """Where things lie in the activation memory.

    Parameters
    ----------
    errors : Placement
    phases : mapping of int to int
        The image, cut by its columns modulo the stride: the first byte of each part, by its first
        column.
    pixel_pitch, row_pitch : int
        Of these parts.
    ones, results : int
        The first bytes.
    aligned : bool
        Each row of errors must begin with a tile of lanes.
    """

    errors: Placement
    phases: Mapping[int, int]
    pixel_pitch: int
    row_pitch: int
    ones: int
    results: int
    aligned: bool


def place_gradient(
    image: Shape, errors: Shape, window: "Window", configuration: Configuration
) -> GradientPlaces:
    """Places an image and its errors.

    Parameters
    ----------
    image, errors : (height, width, channels)
    window : Window
    configuration : Configuration
    """
    (height, width, channels), (rows, columns, outputs) = image, errors
    stride_y, stride_x = window.stride
    lanes, left = configuration.rows, window.padding[2]
    error_pitch = round_up(outputs, configuration.columns)
    placed = Placement(0, columns * error_pitch, error_pitch, rows, columns, outputs)
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
    phases, end = dict[int, int](), placed.end
    for tap in range(min(stride_x, window.kernel[1])):
        phases[(tap - left) % stride_x] = end
        end += height * row_pitch
    ones, end = end, end + rows * columns
    results = round_up(end, max(configuration.lanes, WORD_BYTES))
    return GradientPlaces(
        placed, phases, pixel_pitch, row_pitch, ones, results, aligned=not fitting
    )


def share_out(
    window: "Window", channels: int, tiles: int, configuration: Configuration
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
    (_, kernel_x), stride = window.kernel, window.stride[1]
    widest = -(-len(range(0, kernel_x, stride)) // configuration.pixels)
    if widest > configuration.accumulator_depth:
        raise CapacityError(
            "a row of a kernel must fit accumulator_depth"
            f" ({configuration.accumulator_depth}), not need {widest}"
        )
    found = None
    for parts in range(configuration.largest_parts + 1):
        words, banks = configuration.accumulator_depth >> parts, 2 << parts
        if words < widest:
            break
        some = list(_pieces(window, channels, tiles, words, configuration.pixels))
        passes = [some[first : first + banks] for first in range(0, len(some), banks)]
        if found is None or len(passes) < len(found[1]):
            found = parts, passes
    assert found is not None
    return found


def _pieces(
    window: "Window", channels: int, tiles: int, words: int, pixels: int
) -> Iterator[GradientPiece]:
    (kernel_y, kernel_x), stride = window.kernel, window.stride[1]
    phases = range(min(stride, kernel_x))
    for tile in range(tiles):
        for row, first in itertools.product(range(kernel_y), phases):
            columns = range(first, kernel_x, stride)
            groups = -(-len(columns) // pixels)
            for begin, end in pieces(channels, words // groups):
                yield GradientPiece(row, columns, range(begin, end), tile)
        yield GradientPiece(None, range(1), range(1), tile)

"""Convolutions of few channels that make several neighbouring pixels at once.

The array makes C sums at a time. Where a layer has at most half as many channels, m neighbours of a
row are taken for one pixel of m times the channels: each has its copy of the weights in a kernel
that is wide enough for all of them. Rows, and what lies in them, are the same bytes; but pixels
need not be filled up to the post-processor's L channels, as m of them are written at once.
"""

import dataclasses
import math
from collections.abc import Collection, Sequence

import numpy as np
from slipstick_rtl.config import Configuration

from ..ir.operations import Alias, Convolution, Map, Operation, View
from ..ir.requantization import Requantization, rounding_runs
from ..lower.convolutions import LARGEST_STRIDE
from ..mapping.depthwise_window import fewest_cycles
from ..mapping.reduction import LARGEST_KERNEL_WIDTH, is_diagonal


def fold(operations: Sequence[Operation], configuration: Configuration) -> tuple[Operation, ...]:
    """The operations, with convolutions folded where that takes no more cycles.

    What a folded one makes is read by convolutions only, or by the host.
    """
    if configuration.aligned:
        return tuple(operations)
    moved = {
        name
        for operation in operations
        if isinstance(operation, Map | Alias)
        for name in operation.sources
    }
    return tuple(_folded(operation, moved, configuration) for operation in operations)


def _folded(
    operation: Operation, moved: Collection[str], configuration: Configuration
) -> Operation:
    if not isinstance(operation, Convolution) or operation.result in moved:
        return operation
    pixels = _pixels(operation, configuration)
    if pixels == 1:
        return operation
    made = _fold(operation, pixels)
    lanes = configuration.lanes
    if rounding_runs(made.requantization, made.output.channels, lanes) is None:
        return operation
    if _cycles(made, configuration) > _cycles(operation, configuration):
        return operation
    return made


def _pixels(convolution: Convolution, configuration: Configuration) -> int:
    """Returns how many pixels may become one."""
    view, (_, stride), kernel = convolution.output, convolution.stride, convolution.kernel[1]
    dense = convolution.groups == 1 or convolution.is_diagonal
    if not dense or convolution.is_partial or convolution.dilation[1] > 1:
        return 1
    pixels = 1
    while (
        2 * pixels * view.channels <= configuration.columns
        and view.width % (2 * pixels) == 0
        and 2 * pixels * stride <= LARGEST_STRIDE
        and kernel + (2 * pixels - 1) * stride <= LARGEST_KERNEL_WIDTH
    ):
        pixels *= 2
    whole_slices = pixels * view.channels % configuration.lanes == 0
    return pixels if whole_slices else 1


def _fold(convolution: Convolution, pixels: int) -> Convolution:
    (kernel_y, kernel_x), (stride_y, stride_x) = convolution.kernel, convolution.stride
    view, channels = convolution.output, convolution.input.channels
    weights = convolution.weights
    if convolution.groups > 1:
        weights = weights * np.eye(channels, dtype=np.int8)[:, None, None]
    width = kernel_x + (pixels - 1) * stride_x
    wide = np.zeros((pixels, view.channels, kernel_y, width, channels), np.int8)
    for pixel in range(pixels):
        first = pixel * stride_x
        wide[pixel, :, :, first : first + kernel_x] = weights
    return dataclasses.replace(
        convolution,
        output=View(view.height, view.width // pixels, pixels * view.channels),
        kernel=(kernel_y, width),
        stride=(stride_y, pixels * stride_x),
        weights=wide.reshape(-1, kernel_y, width, channels),
        groups=1,
        requantization=repeated(convolution.requantization, pixels),
        pixels=pixels,
        work=convolution.macs,
    )


def repeated(values: Requantization, pixels: int) -> Requantization:
    """The same for so many times the channels."""
    names = ("bias", "multiplier", "shift", "rounding")
    return dataclasses.replace(
        values, **{name: np.tile(getattr(values, name), pixels) for name in names}
    )


def _cycles(convolution: Convolution, configuration: Configuration) -> int:
    """Estimates the cycles of the array."""
    lanes = math.prod(convolution.kernel) * convolution.weights.shape[3]
    tiles = -(-lanes // configuration.rows)
    if is_diagonal(convolution, configuration):
        together = max(1, configuration.rows // configuration.columns)
        tiles = -(-math.prod(convolution.kernel) // together)
    sliding = fewest_cycles(convolution, configuration)
    view = convolution.output
    vectors = view.height * -(-view.width // configuration.pixels)
    cycles = tiles * max(vectors, configuration.tile_words)
    return cycles if sliding is None else min(sliding, cycles)

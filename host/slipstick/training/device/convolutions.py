"""Expresses the three products of a layer as convolutions that the device runs.

Images and errors are int8 (batch, height, width, channels), weights int8 (O, kernel height, kernel
width, I), or (1, height, width, C) of a depthwise layer. A ``Window`` is the golden functions'.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift

from ...compiler.ir.operations import Convolution, View
from ...compiler.ir.requantization import Requantization
from ...compiler.mapping.reduction import LARGEST_KERNEL_WIDTH
from ...graph import Node
from ...program.steps import Placement

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

SOURCE, RESULT = "source", "result"
"""Names of the tensors of a product."""

_ONE = 1 << 30
"""A multiplier, with a shift of 30."""

_SUM_BYTES = 4

Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class Geometry:
    """A convolution but for its weights: programs are kept by it.

    Parameters
    ----------
    input, output : (height, width, channels)
    kernel, stride, dilation : (y, x)
    padding : (top, left)
        Negative: so many pixels are left out.
    depthwise : bool
    """

    input: tuple[int, int, int]
    output: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    depthwise: bool = False

    def convolution(self, weights: np.ndarray, values: Requantization) -> Convolution:
        """The compiler's form of it.

        Parameters
        ----------
        weights : array of int8, (O, kernel_y, kernel_x, input channels, or 1)
        values : Requantization
        """
        return Convolution(
            Node("product", "conv2d", (SOURCE,), (RESULT,)),
            SOURCE,
            RESULT,
            View(*self.input),
            View(*self.output),
            self.kernel,
            self.stride,
            self.dilation,
            self.padding,
            np.ascontiguousarray(weights),
            self.output[2] if self.depthwise else 1,
            0,
            values,
        )


def forward(
    image: tuple[int, int, int], weights: np.ndarray, window: "Window", depthwise: bool
) -> Geometry:
    """The layer itself.

    Parameters
    ----------
    image : (height, width, I)
    weights : array of int8, (O, height, width, I), or (1, height, width, C)
    window : Window
    depthwise : bool
    """
    outputs = weights.shape[3] if depthwise else len(weights)
    rows, columns = window.outputs(*image[:2])
    top, _, left, _ = window.padding
    return Geometry(
        image,
        (rows, columns, outputs),
        window.kernel,
        window.stride,
        padding=(top, left),
        depthwise=depthwise,
    )


def forward_weights(weights: np.ndarray, depthwise: bool) -> np.ndarray:
    """Weights as ``Geometry.convolution`` takes them."""
    return weights.transpose(3, 1, 2, 0) if depthwise else weights


@dataclass(frozen=True)
class Lattice:
    """Every so many-th pixel of a result.

    Parameters
    ----------
    first, step : (y, x)
    """

    first: tuple[int, int] = (0, 0)
    step: tuple[int, int] = (1, 1)

    def pixels(self, rows: tuple[int, int], columns: tuple[int, int]) -> tuple[slice, slice]:
        """Finds the pixels of the result that rows and columns of the lattice stand for.

        Rows and columns are (first, behind the last).
        """
        (y, x), (step_y, step_x) = self.first, self.step
        return (
            slice(y + rows[0] * step_y, y + (rows[1] - 1) * step_y + 1, step_y),
            slice(x + columns[0] * step_x, x + (columns[1] - 1) * step_x + 1, step_x),
        )

    def within(self, place: Placement, output: View) -> Placement:
        """Returns the placement of its pixels, as those of a result of a size of its own."""
        (y, x), (step_y, step_x) = self.first, self.step
        return Placement(
            place.address + y * place.row_pitch + x * place.pixel_pitch,
            step_y * place.row_pitch,
            step_x * place.pixel_pitch,
            output.height,
            output.width,
            place.channels,
        )


Taps = tuple[slice, slice]
"""Taps of a kernel that a convolution has, (y, x)."""


@dataclass(frozen=True)
class Part:
    """Some pixels of a product, which convolutions make whose sums are added.

    Parameters
    ----------
    reductions : tuple of (Geometry, Taps)
    lattice : Lattice
        Which pixels.
    """

    reductions: tuple[tuple[Geometry, Taps], ...]
    lattice: Lattice = Lattice()


def backward(
    errors: tuple[int, int, int], channels: int, window: "Window", depthwise: bool, size: Size
) -> Iterator[Part]:
    """The input gradient: convolutions of the errors with parts of the kernel, turned round.

    Pixels of the input whose places modulo the stride are the same meet the same taps: they are a
    convolution of their own, with stride 1. So no zeros need to stand between the errors.

    Parameters
    ----------
    errors : (rows, columns, O)
    channels : int
        Of the layer's input.
    window : Window
        The layer's.
    depthwise : bool
    size : (height, width)
        Of the layer's input.
    """
    pads = window.padding[0], window.padding[2]
    shapes = list(zip(size, window.kernel, window.stride, pads, strict=True))
    ways = [list(_phases(*shape)) for shape in shapes]
    for (y, rows, taps_y, pad_y), (x, columns, taps_x, pad_x) in itertools.product(*ways):
        taps = (taps_y, taps_x)
        counts = [
            len(range(kernel)[some]) for some, kernel in zip(taps, window.kernel, strict=True)
        ]
        # no tap: a convolution with zeros writes zeros
        kernel = (counts[0], counts[1]) if all(counts) else (1, 1)
        padding = (pad_y, pad_x) if all(counts) else (0, 0)
        geometry = Geometry(
            errors, (rows, columns, channels), kernel, padding=padding, depthwise=depthwise
        )
        yield Part(((geometry, taps),), Lattice((y, x), window.stride))


def _phases(size: int, kernel: int, stride: int, pad: int) -> Iterator[tuple[int, int, slice, int]]:
    """Yields one side's convolutions: each one's first pixel, count of pixels, taps and padding."""
    for first in range(min(stride, size)):
        least = (first + pad) % stride
        taps = range(least, kernel, stride)
        turned = slice(taps[-1], None, -stride) if taps else slice(0)
        # the last tap meets the first of the errors that a pixel reads
        padding = (taps[-1] - first - pad) // stride if taps else 0
        yield first, -(-(size - first) // stride), turned, padding


def backward_weights(weights: np.ndarray, taps: Taps) -> np.ndarray:
    """Some taps, inputs and outputs exchanged; of a depthwise layer too. Zeros if there are none.

    Parameters
    ----------
    weights : array of int8, (O, height, width, I), or (1, height, width, C)
    taps : Taps

    Returns
    -------
    array of int8, (I, kernel_y, kernel_x, O), or (C, kernel_y, kernel_x, 1)
    """
    some = weights[:, taps[0], taps[1]]
    if not some.size:
        some = np.zeros_like(weights[:, :1, :1])
    return some.transpose(3, 1, 2, 0)


@dataclass(frozen=True)
class GradientRow:
    """Parts that make a row of a kernel's gradients, or all of them.

    Parameters
    ----------
    row : int or None
        None: all of them.
    result : (height, width, channels)
        (I, kernel width, O), or (kernel height, kernel width, C).
    parts : tuple of Part
        Taps are those of the errors.
    """

    row: int | None
    result: tuple[int, int, int]
    parts: tuple[Part, ...]


def gradient_rows(
    images: tuple[int, int, int], errors: tuple[int, int, int], window: "Window", depthwise: bool
) -> Iterator[GradientRow]:
    """The weight gradient as convolutions whose kernel is the error map.

    A depthwise layer's is one depthwise convolution of the image. Otherwise the image is
    ``planes``, and the convolution moves from plane to plane: one result per channel and kernel
    column, for each row of the kernel. With a stride along x, columns of the kernel that meet other
    columns of the image are convolutions of their own.

    Parameters
    ----------
    images, errors : (height, width, channels)
    window : Window
    depthwise : bool
    """
    height, width, channels = images
    outputs = errors[2]
    top, bottom, left, _ = window.padding
    if depthwise:
        geometry = Geometry(
            images,
            (*window.kernel, outputs),
            (1, 1),
            dilation=window.stride,
            padding=(top, left),
            depthwise=True,
        )
        yield GradientRow(None, geometry.output, (_cut_columns(geometry, errors, Lattice()),))
        return
    tall, stride = height + top + bottom, window.stride[1]
    for row in range(window.kernel[0]):
        parts = []
        for first in range(min(stride, window.kernel[1])):
            number, phase = divmod(first - left, stride)
            geometry = Geometry(
                (stride * channels * tall, -(-width // stride), 1),
                (channels, len(range(first, window.kernel[1], stride)), outputs),
                (1, 1),
                (tall, 1),
                (window.stride[0], 1),
                (-row - phase * channels * tall, -number),
            )
            parts.append(_cut_columns(geometry, errors, Lattice((0, first), (1, stride))))
        yield GradientRow(row, (channels, window.kernel[1], outputs), tuple(parts))


def _cut_columns(geometry: Geometry, errors: tuple[int, int, int], lattice: Lattice) -> Part:
    """The part whose kernel is the errors, in as many columns as a kernel may have."""
    rows, columns, _ = errors
    counts = -(-columns // LARGEST_KERNEL_WIDTH)
    size = -(-columns // counts)
    made = []
    for first in range(0, columns, size):
        some = slice(first, min(first + size, columns))
        padding = (geometry.padding[0], geometry.padding[1] - first * geometry.dilation[1])
        kernel = (rows, some.stop - some.start)
        cut = dataclasses.replace(geometry, kernel=kernel, padding=padding)
        made.append((cut, (slice(None), some)))
    return Part(tuple(made), lattice)


def planes(image: np.ndarray, window: "Window") -> np.ndarray:
    """The channels of an image as planes, one above the other, with rows of padding.

    With a stride S along x there are S such piles, one above the other: the first has columns 0, S,
    2 S and so on, the second 1, S + 1 and so on. So what a kernel meets lies side by side.

    Parameters
    ----------
    image : array of int8, (height, width, C)
    window : Window

    Returns
    -------
    array of int8, (S x C x padded height, width / S rounded up, 1)
    """
    top, bottom, _, _ = window.padding
    stride, width = window.stride[1], image.shape[1]
    more = -width % stride
    padded = np.pad(image.transpose(2, 0, 1), ((0, 0), (top, bottom), (0, more)))
    piles = padded.reshape(*padded.shape[:2], -1, stride).transpose(3, 0, 1, 2)
    return piles.reshape(-1, piles.shape[3], 1)


def nearest(bias: np.ndarray, shift: int, lowest: int) -> Requantization:
    """``finish_forward``: one rounding to nearest even.

    Parameters
    ----------
    bias : array of int32, (channels,)
    shift : int, 0..31
    lowest : int
        Code.
    """
    places = encode_shift(Rounding.HALF_EVEN, 30 + shift)
    return _same(bias.astype(np.int64), _ONE, places, lowest)


def stochastic(channels: int, shift: int) -> Requantization:
    """``finish_errors``, for a ``TrainingFlag.STOCHASTIC``; shift 1..31."""
    return _same(np.zeros(channels, np.int64), 1 << (31 - shift), shift, -127)


def sum_byte(channels: int, number: int) -> Requantization:
    """A byte of a sum, the lowest is 0, for a ``TrainingFlag.AS_BYTES``."""
    places = encode_shift(Rounding.HALF_EVEN, 30 + 8 * number)
    return _same(np.zeros(channels, np.int64), _ONE, places, -128)


def sum_bytes(channels: int) -> list[Requantization]:
    """All bytes of a sum, the lowest first."""
    return [sum_byte(channels, number) for number in range(_SUM_BYTES)]


def _same(bias: np.ndarray, multiplier: int, shift: int, lowest: int) -> Requantization:
    count = len(bias)
    return Requantization(
        bias,
        np.full(count, multiplier, np.int64),
        np.full(count, shift, np.int64),
        # the instruction has the rounding; runs of channels go by this
        np.full(count, int(Rounding.FLOAT), np.int64),
        0,
        lowest,
        127,
    )

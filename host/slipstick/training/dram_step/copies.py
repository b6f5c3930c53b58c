"""Writes programs that bring a tensor's codes to other pixels as they are, also behind a mask."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import TrainingFlag

from ..device.convolutions import Geometry, Lattice, nearest
from ..device.program import Drain, PartConvolutions, Product, ProductWriter

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]


def lattices(window: "Window") -> list[Lattice]:
    """The pixels that each tap of a window meets, in the order of rows."""
    return [
        Lattice((y, x), window.stride)
        for y in range(window.kernel[0])
        for x in range(window.kernel[1])
    ]


def covers(size: tuple[int, int], window: "Window") -> bool:
    """Whether each pixel of an image (height, width) is in a window, if these do not overlap."""
    sides = zip(window.outputs(*size), window.stride, size, strict=True)
    return window.kernel == window.stride and all(n * step == side for n, step, side in sides)


def copy_program(shape: Shape, configuration: Configuration, *, masked: bool) -> Product:
    """Copies a tensor, with the pitches that a result has.

    Parameters
    ----------
    shape : (height, width, channels)
    configuration : Configuration
        With ``training``.
    masked : bool
        Codes become 0 where the bytes at the product's ``mask`` are not above 0.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    geometry = Geometry(shape, shape, (1, 1), depthwise=True)
    return _written(geometry, [Lattice()], shape[:2], configuration, masked)


def unpool_program(
    errors: Shape,
    size: tuple[int, int],
    window: "Window",
    configuration: Configuration,
    *,
    masked: bool,
) -> Product:
    """Copies each pixel to all pixels of its window. Pixels in no window are not written.

    Parameters
    ----------
    errors : (rows, columns, channels)
    size : (height, width)
        Of the result.
    window : Window
        Without padding; windows do not overlap.
    configuration : Configuration
        With ``training``.
    masked : bool
        As ``copy_program`` has it.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    rows, columns, channels = errors
    if (rows, columns) == (1, 1):
        # the window stands still: all pixels of the result read the same one
        result = (*window.kernel, channels)
        still = Geometry(errors, result, (1, 1), (0, 0), depthwise=True)
        return _written(still, [Lattice()], size, configuration, masked)
    geometry = Geometry(errors, errors, (1, 1), depthwise=True)
    return _written(geometry, lattices(window), size, configuration, masked)


def _written(
    geometry: Geometry,
    places: Sequence[Lattice],
    size: tuple[int, int],
    configuration: Configuration,
    masked: bool,
) -> Product:
    """A depthwise convolution with ones, whose result goes to each of the places."""
    channels = geometry.output[2]
    values = nearest(np.zeros(channels, np.int32), 0, -127)
    copy = geometry.convolution(np.ones((channels, 1, 1, 1), np.int8), values)
    flags = TrainingFlag.MASKED if masked else TrainingFlag(0)
    parts = [PartConvolutions([copy], place) for place in places]
    drains = [Drain(values, flags)]
    return ProductWriter(parts, (*size, channels), drains, configuration).write()

"""Says how a tensor's codes come to other pixels as they are, also behind a mask."""

from typing import TYPE_CHECKING

from ..device.convolutions import Geometry, Lattice
from .products import ProductSpec, Shape, copy_spec

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window


def lattices(window: "Window") -> list[Lattice]:
    """The pixels that each tap of a window meets, in the order of rows."""
    return [
        Lattice((y, x), window.stride)
        for y in range(window.kernel[0])
        for x in range(window.kernel[1])
    ]


def covers(size: tuple[int, int], window: "Window") -> bool:
    """Returns whether each pixel of an image is in a window, if these do not overlap."""
    sides = zip(window.outputs(*size), window.stride, size, strict=True)
    return window.kernel == window.stride and all(n * step == side for n, step, side in sides)


def copied(shape: Shape, *, masked: bool) -> ProductSpec:
    """Copies a tensor (height, width, channels); codes become 0 where the mask is not above 0."""
    geometry = Geometry(shape, shape, (1, 1), depthwise=True)
    return copy_spec(geometry, [Lattice()], shape[:2], masked=masked)


def unpooled(
    errors: Shape, size: tuple[int, int], window: "Window", *, masked: bool
) -> ProductSpec:
    """Copies each pixel to all pixels of its window. Pixels in no window are not written.

    Parameters
    ----------
    errors : (rows, columns, channels)
    size : (height, width)
        Of the result.
    window : Window
        Without padding; windows do not overlap.
    masked : bool
        As ``copied`` has it.
    """
    rows, columns, channels = errors
    if (rows, columns) == (1, 1):
        # the window stands still: all pixels of the result read the same one
        result = (*window.kernel, channels)
        still = Geometry(errors, result, (1, 1), (0, 0), depthwise=True)
        return copy_spec(still, [Lattice()], size, masked=masked)
    geometry = Geometry(errors, errors, (1, 1), depthwise=True)
    return copy_spec(geometry, lattices(window), size, masked=masked)

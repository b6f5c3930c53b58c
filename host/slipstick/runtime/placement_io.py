"""Tensors between NumPy and a device's activation memory: what a placement says, in bytes."""

from collections.abc import Iterator

import numpy as np
from slipstick_rtl.link.protocol import Region

from ..program.steps import Placement

_MOST = 1 << 16
"""Largest of the sizes of a region."""


def region_of(place: Placement) -> Region | None:
    """The region of the tensor's bytes in NHWC order.

    None if it has no bytes, or its gaps or sizes are more than a region can have.
    """
    channels, width, height = place.channels, place.width, place.height
    row = width * channels
    if place.pixel_pitch == channels or width == 1:
        # rows without gaps are one run each, and without gaps between them all one
        whole = place.row_pitch == row or height == 1
        sizes = {"run_bytes": row * height} if whole else {"run_bytes": row, "runs": height}
        gaps = {} if whole else {"gap": place.row_pitch - row}
    else:
        sizes = {"run_bytes": channels, "runs": width, "planes": height}
        gap = place.pixel_pitch - channels
        gaps = {"gap": gap, "plane_gap": gap + place.row_pitch - width * place.pixel_pitch}
    if not all(1 <= size <= _MOST for size in sizes.values()):
        return None
    if not all(gap < _MOST for gap in gaps.values()):
        return None
    return Region(address=place.address, **sizes, **gaps)


def runs(place: Placement) -> Iterator[tuple[int, slice]]:
    """The tensor's contiguous stretches, as few as there are.

    Yields
    ------
    (address, slice)
        Where a stretch starts in activation memory, and which of the tensor's bytes, in NHWC
        order, lie there.
    """
    pixel, row = place.channels, place.width * place.channels
    if place.pixel_pitch > place.channels and place.width > 1:
        for y in range(place.height):
            for x in range(place.width):
                start = y * row + x * pixel
                address = place.address + y * place.row_pitch + x * place.pixel_pitch
                yield address, slice(start, start + pixel)
    elif place.row_pitch > row and place.height > 1:
        for y in range(place.height):
            yield place.address + y * place.row_pitch, slice(y * row, (y + 1) * row)
    else:
        yield place.address, slice(0, place.height * row)


def stored_bytes(place: Placement) -> int:
    """Bytes from the tensor's first element to its last, with the gaps between."""
    if not place.height * place.width * place.channels:
        return 0
    last_row = (place.height - 1) * place.row_pitch
    return last_row + (place.width - 1) * place.pixel_pitch + place.channels


def gather(place: Placement, stored: np.ndarray) -> np.ndarray:
    """Picks a tensor out of what lies in memory.

    Parameters
    ----------
    place : Placement
    stored : array of int8, shape (batch, stored_bytes(place))

    Returns
    -------
    array of int8, shape (batch, height * width * channels)
    """
    if stored.shape[1] == place.height * place.width * place.channels:
        return stored
    y, x, c = np.ogrid[: place.height, : place.width, : place.channels]
    offsets = (y * place.row_pitch + x * place.pixel_pitch + c).reshape(-1)
    return stored[:, offsets]


def scatter(place: Placement, tensor: np.ndarray) -> np.ndarray:
    """Lays a tensor out as memory has it: the inverse of ``gather``; gaps are 0.

    Parameters
    ----------
    place : Placement
    tensor : array of int8, shape (height, width, channels)

    Returns
    -------
    array of int8, shape (place.bytes,)
    """
    memory = np.zeros(place.bytes, np.int8)
    strides = place.row_pitch, place.pixel_pitch, 1
    np.lib.stride_tricks.as_strided(memory, tensor.shape, strides)[...] = tensor
    return memory

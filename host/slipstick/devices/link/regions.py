"""Describes to a device where tensors lie, each place once, as long as it remembers it."""

from collections import OrderedDict
from collections.abc import Iterator

from slipstick_rtl.link.protocol import REGIONS, Command, Region

from .request import Request

_MOST = 1 << 16


def region_of(
    address: int, row_pitch: int, pixel_pitch: int, height: int, width: int, channels: int
) -> Region | None:
    """The region of a tensor's bytes in NHWC order; None if its gaps are too wide for one.

    Parameters
    ----------
    address, row_pitch, pixel_pitch, height, width, channels : int
        As in ``program.steps.Placement``.
    """
    run, row = channels, width * channels
    if pixel_pitch == channels or width == 1:
        # rows without gaps are one run each, and without gaps between them all one
        whole = row_pitch == row or height == 1
        sizes = {"run_bytes": row * height} if whole else {"run_bytes": row, "runs": height}
        gaps = {} if whole else {"gap": row_pitch - row}
    else:
        sizes = {"run_bytes": run, "runs": width, "planes": height}
        gaps = {"gap": pixel_pitch - run, "plane_gap": row_pitch - width * pixel_pitch}
        gaps["plane_gap"] += pixel_pitch - run
    if not all(1 <= size <= _MOST for size in sizes.values()):
        return None
    if not all(gap < _MOST for gap in gaps.values()):
        return None
    return Region(address=address, **sizes, **gaps)


class RegionTable:
    """Which regions a device knows, and by which number; the least used one is forgotten."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[Region, int] = OrderedDict()
        self._generation = 0

    def find(self, region: Region, generation: int) -> tuple[int, Request | None]:
        """The number of a region, and the request that describes it, if the device must be told.

        Parameters
        ----------
        region : Region
        generation : int
            Another one than before: whatever was told may have been lost.
        """
        if generation != self._generation:
            self._numbers.clear()
            self._generation = generation
        number = self._numbers.get(region)
        if number is not None:
            self._numbers.move_to_end(region)
            return number, None
        taken = len(self._numbers)
        number = taken if taken < REGIONS else self._numbers.popitem(last=False)[1]
        self._numbers[region] = number
        payload = bytes([number]) + region.pack()
        return number, Request(Command.DEFINE, payload, silent=True)


def pieces(size: int, longest: int) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of stretches that are no longer than ``longest``."""
    for first in range(0, size, longest):
        yield first, min(first + longest, size)

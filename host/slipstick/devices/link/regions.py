"""Describes to a device where tensors lie, each place once, as long as it remembers it."""

from collections import OrderedDict
from collections.abc import Iterator

from slipstick_rtl.link.protocol import REGIONS, Command, Region

from .request import Request


class RegionTable:
    """Keeps the regions that a device knows, by number; forgets the least recently used one."""

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

"""Follows which loads are in a device's memories, as those need not be written again."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from . import space_units
from .steps import Image


class Loaded:
    """Records which of a program's loads are on a device.

    Parameters
    ----------
    loads : sequence of Image
    configuration : Configuration
    """

    def __init__(self, loads: Sequence[Image], configuration: Configuration) -> None:
        units = space_units(configuration)
        self._spans = []
        for image in loads:
            first = image.address * units[Space(image.space)][0]
            self._spans.append((image.space, first, first + len(image.data)))
        self._present: set[int] = set()

    def __contains__(self, load: int) -> bool:
        return load in self._present

    def add(self, load: int) -> None:
        """It is there now, and what it overwrites is not."""
        space, first, end = self._spans[load]
        self._present = {
            other
            for other in self._present
            if self._spans[other][0] != space
            or self._spans[other][2] <= first
            or end <= self._spans[other][1]
        } | {load}

    def forget(self) -> None:
        """Nothing is known to be there."""
        self._present.clear()

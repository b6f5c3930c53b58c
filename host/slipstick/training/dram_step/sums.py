"""Writes sums of two tensors with unequal exponents: tables bring both to one unit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration

from ...compiler.mapping.activation_layout import round_up
from ...errors import CapacityError
from ...program.steps import Placement
from ..device.program import Drain
from .maps import MapWriter, Program

_BOTH = 3
"""``use_table`` of even and odd taps."""


@dataclass(frozen=True)
class SumProgram:
    """A program, and where its tensors lie.

    Parameters
    ----------
    program : Program
    terms : (Placement, Placement)
        Bytes behind a pixel's channels must be 0.
    result : Placement
    """

    program: Program
    terms: tuple[Placement, Placement]
    result: Placement


def sum_program(
    shape: tuple[int, int, int],
    places: tuple[int | None, int | None],
    drains: Sequence[Drain],
    configuration: Configuration,
) -> SumProgram:
    """Adds two tensors.

    Parameters
    ----------
    shape : (height, width, channels)
    places : (int or None, int or None)
        By how many bits the codes of each are shifted to the left, 0..15; None: it counts as 0.
    drains : sequence of Drain
        What becomes of the sums, with one entry for all channels; each writes over the one before.
    configuration : Configuration
        With ``training``.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    height, width, channels = shape
    pixel = round_up(channels, configuration.lanes)
    size = height * width * pixel
    first, second, result = (
        Placement(number * size, width * pixel, pixel, height, width, channels)
        for number in range(3)
    )
    if result.end > configuration.activation_bytes:
        raise CapacityError(
            f"a sum's tensors must fit activation_bytes ({configuration.activation_bytes}), not"
            f" {result.end} bytes"
        )
    maps = MapWriter(configuration, shape)
    codes = np.arange(-128, 128)
    even, odd = (0 * codes if each is None else codes << each for each in places)
    maps.load_table(even, odd)
    for drain in drains:
        maps.add(
            (first.address, first.row_pitch, pixel),
            (result.address, result.row_pitch, pixel),
            use_table=_BOTH,
            tap_step_x=second.address - first.address,
            **maps.finish(drain.values, drain.flags),
        )
    return SumProgram(maps.program(), (first, second), result)

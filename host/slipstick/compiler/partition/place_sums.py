"""A mean over more places than the memory holds: sums of some places at a time.

The array adds them, as a depthwise convolution whose weights are 1. Its sums stay in the
accumulators from part to part, and the last part makes the codes. So no sum is rounded before.
"""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
from slipstick_rtl.config import Configuration

from ..ir.operations import Convolution, Map, View
from ..ir.requantization import Requantization
from ..mapping.reduction import LARGEST_KERNEL_WIDTH
from ..scheduling.groups import split
from .cost_estimate import Budget, job_fits
from .fused_layers import Part
from .halo import Region, Span
from .spatial_tiles import channel_boxes, splits_words
from .subprograms import Job


def cut_places(part: Part, budget: Budget) -> list[Job] | None:
    """The jobs that make a mean over a whole picture, or a sum; part after part.

    Parameters
    ----------
    part : Part
    budget : Budget

    Returns
    -------
    list of Job or None
        None if the layer is another one, or nothing fits.
    """
    number, whole = part
    hardware = budget.hardware
    if not isinstance(whole, Map) or not _adds_places(whole):
        return None
    # sums must be those of codes
    if hardware.number_format != "int8" or splits_words(hardware):
        return None
    for spans, places in _cuts(whole, hardware):
        if job_fits(_job(number, whole, places[0], spans[0], (True, True)), budget):
            return [
                _job(number, whole, place, span, (at == 0, at == len(places) - 1))
                for span in spans
                for at, place in enumerate(places)
            ]
    return None


def _adds_places(whole: Map) -> bool:
    """It adds all places of its input, channel by channel."""
    plain = not (whole.looked_up or whole.shifts or whole.take_maximum or whole.gathers)
    if not plain or whole.is_binary or len(whole.windows) != 1 or whole.output.pixels > 1:
        return False
    window = whole.windows[0]
    return window.origin == (0, 0) and window.taps[0] * window.taps[1] > 1


def _cuts(
    whole: Map, hardware: Configuration
) -> Iterator[tuple[list[Span], list[tuple[Span, Span]]]]:
    """Channels and places of the parts; large parts first.

    A part has as many tiles of channels as there are banks of accumulators, at most.
    """
    height, width = whole.windows[0].taps
    everything = _added(whole, View(1, 1, whole.output.channels), (True, True))
    together = 2 << hardware.largest_parts if hardware.largest_parts else 1
    while together:
        spans = channel_boxes(everything, hardware, together)
        rows, columns = 1, -(-width // LARGEST_KERNEL_WIDTH)
        while True:
            places = list(itertools.product(split(height, rows), split(width, columns)))
            # parts of one size have the same weights
            places.sort(key=lambda place: tuple(low - high for low, high in place))
            yield spans, places
            if rows < height:
                rows = min(2 * rows, height)
            elif columns < width:
                columns = min(2 * columns, width)
            else:
                break
        together //= 2


def _job(
    number: int, whole: Map, place: tuple[Span, Span], channels: Span, ends: tuple[bool, bool]
) -> Job:
    """Adds some places of some channels; ``ends``: whether it is the first part, and the last."""
    region, box = Region(*place, channels), Region((0, 1), (0, 1), channels)
    owned = {whole.result: box} if ends[1] else {}
    added = _added(whole, region.view, ends)
    return Job((added,), (number,), {whole.result: box, whole.sources[0]: region}, owned)


def _added(whole: Map, view: View, ends: tuple[bool, bool]) -> Convolution:
    """A convolution that adds all places of a part."""
    return Convolution(
        whole.node,
        whole.sources[0],
        whole.result,
        view,
        View(1, 1, view.channels),
        kernel=(view.height, view.width),
        stride=(1, 1),
        dilation=(1, 1),
        padding=(0, 0),
        weights=np.ones((view.channels, view.height, view.width, 1), np.int8),
        groups=view.channels,
        input_zero_point=0,
        requantization=_for_channels(whole.windows[0].requantization, view.channels),
        accumulates=not ends[0],
        drains=ends[1],
        work=0,
    )


def _for_channels(values: Requantization, count: int) -> Requantization:
    """One entry per channel, all alike."""
    names = ("bias", "multiplier", "shift", "rounding")
    return dataclasses.replace(values, **{n: np.repeat(getattr(values, n), count) for n in names})

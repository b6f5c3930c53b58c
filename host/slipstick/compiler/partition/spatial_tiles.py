"""One layer in boxes: rows, columns and output channels, and parts of its reduction."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

from ..ir.operations import Convolution, Map
from ..mapping.activation_layout import round_up
from ..mapping.reduction import channel_spans
from ..scheduling.groups import LARGEST_LOOP, split
from .cost_estimate import Budget, demand, job_fits
from .fused_layers import Part, channel_unit, make_job
from .halo import Region, Span, flattened, goes_down, needed, restrict, split_reduction
from .subprograms import Job

_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")


def cut(part: Part, budget: Budget) -> list[Job] | None:
    """The jobs that make all of a layer's output, in an order that moves few bytes.

    Parameters
    ----------
    part : Part
    budget : Budget

    Returns
    -------
    list of Job or None
        None if not even the smallest boxes fit, or it has no parts.
    """
    operation = part[1]
    if isinstance(operation, Map) and operation.gathers:
        return None
    width = _channels(operation, budget)
    if width is None:
        return _cut_reduction(part, budget)
    view = operation.output
    channels = _spans(view.channels, width)
    sides = _sides(part, channels[0], budget)
    if sides is None:
        return _cut_reduction(part, budget) if _has_long_sums(operation) else None
    turns = bool(budget.hardware.dram)
    rows, columns = sides
    if turns and _goes_down(part, rows, columns[0], channels):
        # what both of two stripes read stays if the next one lies before the last one
        places = [(each, span) for span in columns for each in rows[::-1]]
        turns = False
    else:
        places = list(itertools.product(rows, columns))
    if _weights_first(operation, len(places), len(channels)):
        order = [(place, span) for span, place in passes(channels, places, turns=turns)]
    else:
        order = list(passes(places, channels, turns=turns))
    return [
        make_job([part], {operation.result: Region(rows, columns, span)})
        for (rows, columns), span in order
    ]


def _goes_down(part: Part, rows: Sequence[Span], columns: Span, channels: Sequence[Span]) -> bool:
    """Tells whether the last stripe is made first."""
    needs = [needed(part[1], Region(each, columns, channels[0])).rows for each in rows[:2]]
    return len(needs) > 1 and goes_down((needs[0], needs[1]), len(rows), len(channels))


def passes(
    outer: Iterable[_Outer], inner: Sequence[_Inner], *, turns: bool
) -> Iterator[tuple[_Outer, _Inner]]:
    """Yields all pairs; with ``turns`` each pass begins with what the one before ended with.

    So what that one still has on the chip does not come again.
    """
    for number, each in enumerate(outer):
        for other in inner[::-1] if turns and number % 2 else inner:
            yield each, other


def _spans(count: int, width: int) -> list[Span]:
    return [(first, min(first + width, count)) for first in range(0, count, width)]


def _has_long_sums(operation: Convolution | Map) -> bool:
    return isinstance(operation, Convolution) and operation.groups == 1


def _weights_first(operation: Convolution | Map, places: int, channels: int) -> bool:
    """Tells whether it is better to load all weights once than to load the inputs once."""
    if not _has_long_sums(operation):
        return True
    assert isinstance(operation, Convolution)
    weights, inputs = operation.weights.size, operation.input.elements
    return weights + inputs * channels <= weights * places + inputs


def _channels(operation: Convolution | Map, budget: Budget) -> int | None:
    """The most channels whose weights fit, all or a multiple of a unit; None if no unit's do."""
    total, unit = operation.output.channels, channel_unit(operation, budget)
    count = -(-total // unit)
    while count:
        span = (0, min(count * unit, total))
        view = operation.output
        box = Region((0, 1), (0, min(view.width, budget.hardware.accumulator_depth)), span)
        job = make_job([(0, operation)], {operation.result: box})
        needs = demand(job.operations, budget.hardware)
        if needs.fits(budget):
            # pieces of one size share their instructions
            pieces = -(-total // (count * unit))
            return min(round_up(-(-total // pieces), unit), total)
        allowed = (
            (budget.weight_bytes, needs.weight_bytes),
            # hardware without memory of parameters has room for none, and needs none
            (budget.parameter_words, needs.parameter_words),
            (budget.instructions, needs.instructions),
        )
        share = min(room / need for room, need in allowed if need)
        count = min(int(count * share), count - 1)
    return None


def _sides(
    part: Part, channels: Span, budget: Budget, most_vectors: int | None = None
) -> tuple[list[Span], list[Span]] | None:
    """The largest boxes of rows and columns that fit, as spans of either; None if none does."""
    operation = part[1]
    view = operation.output
    across = 1
    while True:
        down = 1
        columns = split(view.width, across)
        while down <= view.height:
            rows = split(view.height, down)
            # the first are the largest, those inside need places around them
            boxes = [
                Region(rows[min(y, down - 1)], columns[min(y, across - 1)], channels)
                for y in range(2)
            ]
            if all(_fits(part, box, budget, most_vectors) for box in boxes):
                return rows, columns
            down += max(1, down // 4)
        if across == view.width:
            return None
        across = min(2 * across, view.width)


def _fits(part: Part, box: Region, budget: Budget, most_vectors: int | None) -> bool:
    job, view = make_job([part], {part[1].result: box}), box.view
    vectors = view.height * -(-view.width // budget.hardware.pixels)
    return (
        job_fits(job, budget)
        and (most_vectors is None or vectors <= most_vectors)
        and view.width <= LARGEST_LOOP
    )


def _cut_reduction(part: Part, budget: Budget) -> list[Job] | None:
    """Boxes of one channel tile each, whose sums are made of some input channels at a time."""
    number, whole = part
    if not _has_long_sums(whole) or splits_words(budget.hardware):
        return None
    assert isinstance(whole, Convolution)
    convolution = flattened(whole)
    tiles = channel_boxes(convolution, budget.hardware, 1)
    chunks = _chunks(convolution, budget)
    if chunks is None:
        return None
    thin = split_reduction(convolution, chunks[0], first=True, last=True)
    sides = _sides((number, thin), tiles[0], budget, budget.hardware.accumulator_depth)
    if sides is None:
        return None
    return [
        _partial_job((number, convolution), Region(rows, columns, channels), chunk, chunks)
        for rows, columns in itertools.product(*sides)
        for channels in tiles
        for chunk in chunks
    ]


def cut_sums(part: Part, budget: Budget) -> list[Job] | None:
    """Boxes of as many channel tiles as there are banks of accumulators for all places.

    Their sums are made of some input channels at a time, so that all weights pass once, and the
    inputs once for each box. None if the accumulators do not hold the places of a channel tile, or
    nothing fits. The images of a batch would not share the weights: their sums have the same banks.
    """
    number, whole = part
    hardware = budget.hardware
    if not hardware.dram or budget.images > 1:
        return None
    vectors = whole.output.height * -(-whole.output.width // hardware.pixels)
    fitting = [
        parts
        for parts in range(hardware.largest_parts + 1)
        if vectors <= hardware.accumulator_depth >> parts
    ]
    if not _has_long_sums(whole) or splits_words(hardware) or not fitting:
        return None
    assert isinstance(whole, Convolution)
    convolution = flattened(whole)
    boxes = channel_boxes(convolution, hardware, 2 << fitting[-1])
    view, count = convolution.output, convolution.input.channels
    places = (0, view.height), (0, view.width)
    step = max(hardware.rows, hardware.lanes)
    for size in sorted({round_up(-(-count // parts), step) for parts in range(2, count + 1)})[::-1]:
        thin = split_reduction(convolution, (0, size), first=True, last=True)
        if _fits((number, thin), Region(*places, boxes[0]), budget, None):
            chunks = _spans(count, size)
            return [
                _partial_job((number, convolution), Region(*places, channels), chunk, order)
                for turn, channels in enumerate(boxes)
                for order in [chunks[::-1] if turn % 2 else chunks]
                for chunk in order
            ]
    return None


def channel_boxes(convolution: Convolution, hardware: Configuration, together: int) -> list[Span]:
    """Returns the output channels, so many tiles of the array together."""
    tiles = list(channel_spans(convolution, hardware))
    parts = (tiles[first : first + together] for first in range(0, len(tiles), together))
    return [(some[0][0], some[-1][0] + some[-1][1]) for some in parts]


def splits_words(hardware: Configuration) -> bool:
    """Returns whether a tile's channels are a part of a word of DRAM, which is stored whole."""
    return bool(hardware.dram) and hardware.columns < WORD_BYTES


def _chunks(convolution: Convolution, budget: Budget) -> list[Span] | None:
    """Input channels in parts whose weights fit, and a window of which takes half the memory."""
    taps = math.prod(convolution.kernel)
    room = budget.weight_bytes
    if not budget.hardware.ninth_bits:
        room -= budget.hardware.parameter_block_words * budget.hardware.weight_word_bytes
    lanes = room // budget.hardware.columns // taps
    window = min(convolution.kernel[0], convolution.input.height)
    window *= min(convolution.kernel[1], convolution.input.width)
    room = budget.activation_bytes // 2 // window
    step = max(budget.hardware.rows, budget.hardware.lanes)
    width = min(lanes, room) // step * step
    if not width:
        return None
    count = -(-convolution.input.channels // width)
    width = -(-convolution.input.channels // count // step) * step
    return _spans(convolution.input.channels, width)


def _partial_job(part: Part, box: Region, chunk: Span, chunks: Sequence[Span]) -> Job:
    number, convolution = part
    assert isinstance(convolution, Convolution)
    reach = needed(convolution, box)
    source = Region(reach.rows, reach.columns, chunk)
    whole = restrict(convolution, box, {convolution.source: reach})
    assert isinstance(whole, Convolution)
    last = chunk == chunks[-1]
    partial = split_reduction(whole, chunk, first=chunk == chunks[0], last=last)
    regions = {convolution.result: box, convolution.source: source}
    owned = {convolution.result: box} if last else {}
    return Job((partial,), (number,), regions, owned, {convolution.source: convolution.input})

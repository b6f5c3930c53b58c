"""Cuts results into what a bank of accumulators holds, so that array and post-processor overlap.

While the array fills a bank, the post-processor empties the other one. What is drained behind the
last CONVOLVE, and what is convolved before the first DRAIN, overlaps nothing. So the last pieces of
a result are small where the array takes longer, and the first ones where the post-processor does.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from .durations import run_cycles
from .relocation import INSTRUCTION_BYTES, Built, Streams

Heights = tuple[tuple[int, ...], ...]
"""Rows of each piece, for each group of pixels with a part and a tile of channels of their own."""

_RATIOS = 0.5, 0.65, 0.8
"""Shares of the remaining rows that a piece takes."""
_EQUAL = 1, 2, 4, 8, 16
"""Rows of pieces of equal size."""
_INSTRUCTION_CYCLES = 4
"""Cycles that a further instruction must save, as it takes room."""
_KEPT = 4096
"""Choices that are remembered."""


@dataclass(frozen=True)
class Plan:
    """A way to cut.

    Parameters
    ----------
    heights : Heights
    parts, banks : int
        What banks there are, as instructions say it, and how many of them pieces take in turns. Of
        many, each is small, and pieces wait less for those before.
    """

    heights: Heights
    parts: int = 0
    banks: int = 2


_chosen: dict[tuple[Streams, Configuration, bool], Plan] = {}


def plans(
    rows: Sequence[int], columns: int, configuration: Configuration, *, halved: bool = False
) -> Iterator[Plan]:
    """Ways to cut, the one with the fewest pieces first.

    Parameters
    ----------
    rows : sequence of int
        Of each group.
    columns : int
        Words of a bank that a row takes.
    configuration : Configuration
    halved : bool
        The second half of all words holds sums of others.
    """
    found, depth = set[Plan](), configuration.accumulator_depth
    for parts in range(configuration.largest_parts + 1):
        words, banks = depth >> parts, 2 << parts
        if halved:
            words, banks = min(words, depth // 2), max(banks // 2, 2)
        most = words // columns
        for heights in _heights(rows, most) if most else ():
            plan = Plan(heights, parts, banks)
            if plan not in found:
                found.add(plan)
                yield plan


def _heights(rows: Sequence[int], most: int) -> Iterator[Heights]:
    whole = tuple(_equal(count, most) for count in rows)
    yield whole
    for height in _EQUAL:
        yield tuple(_equal(count, min(height, most)) for count in rows)
    for ratio in _RATIOS:
        last = _falling(rows[-1], most, ratio)
        yield (*whole[:-1], last)
        first = _falling(rows[0], most, ratio)[::-1]
        yield (first, *whole[1:])
        if len(rows) > 1:
            yield (first, *whole[1:-1], last)


def _equal(count: int, height: int) -> tuple[int, ...]:
    whole, rest = divmod(count, height)
    return (height,) * whole + (rest,) * (rest > 0)


def _falling(count: int, most: int, ratio: float) -> tuple[int, ...]:
    found = list[int]()
    while count:
        found.append(min(most, max(1, math.ceil(count * ratio))))
        count -= found[-1]
    return tuple(sorted(found, reverse=True))


def refuse_half(halved: bool) -> None:
    """CapacityError for a result whose rows do not fit half of the accumulators, if it has half."""
    if halved:
        raise CapacityError("a row of a result must fit half of accumulator_depth")


def choose(
    every: Iterable[Plan],
    write: Callable[[Plan], Built],
    configuration: Configuration,
    *,
    halved: bool,
) -> Built:
    """The program with the pieces that take the fewest cycles, predicted.

    Parameters
    ----------
    every : iterable of Plan
    write : callable
        Writes a program.
    configuration : Configuration
    halved : bool
        As ``plans`` has it.
    """
    best, *others = every
    made = write(best)
    # programs that are alike but for constants have the same pieces
    key = made.streams, configuration, halved
    if key in _chosen:
        return write(_chosen[key])
    least = _cost(made.streams, configuration)
    for plan in others:
        found = write(plan)
        if (cost := _cost(found.streams, configuration)) < least:
            made, best, least = found, plan, cost
    if len(_chosen) >= _KEPT:
        _chosen.clear()
    _chosen[key] = best
    return made


def _cost(streams: Streams, configuration: Configuration) -> int:
    count = (len(streams.matrix) + len(streams.post)) // INSTRUCTION_BYTES
    cycles = run_cycles(streams.matrix, streams.post, configuration)
    return cycles + _INSTRUCTION_CYCLES * count

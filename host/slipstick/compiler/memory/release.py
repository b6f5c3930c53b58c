"""Finds from when on the next image may arrive while a run goes on."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...program.release import Release
from ...program.steps import Placement
from ..timing.timeline import Timeline
from .second_place import word_bytes

_RELEASE_CYCLES = 256
"""Cycles that a HOLD and a shorter PUT behind it cost: the link then has less in its buffer."""


_Part = tuple[str, int, int, tuple[int, int]]
"""A tensor's rows, and how many instructions of each stream must have been completed before."""


@dataclass(frozen=True)
class Early:
    """Describes how early the next inputs may come.

    Parameters
    ----------
    releases : tuple of Release
        Of all that is uploaded; or none.
    end : int
        The cycle of the run in which the last byte has come, of a byte per cycle.
    """

    releases: tuple[Release, ...]
    end: int


def find_releases(
    uploaded: Sequence[tuple[str, Placement]],
    downloaded: Sequence[Placement],
    timeline: Timeline,
    configuration: Configuration,
) -> Early:
    """The releases of a run's inputs; none if outputs lie where inputs do.

    Parameters
    ----------
    uploaded : sequence of (name, Placement)
        In the order in which they are uploaded.
    downloaded : sequence of Placement
    timeline : Timeline
        The run.
    configuration : Configuration
    """
    total = sum(_row_bytes(place) * place.height for _, place in uploaded)
    word = word_bytes(configuration)
    for (_, one), other in itertools.product(uploaded, downloaded):
        # the outputs are read when the next inputs have come
        if one.address // word < -(-other.end // word) and other.address // word < -(
            -one.end // word
        ):
            return Early((), timeline.end + total)
    rows = [
        (name, y, counts)
        for name, place in uploaded
        for y, counts in enumerate(_rows(place, timeline, word))
    ]
    parts: list[_Part] = []
    needed = (0, 0)
    for name, y, counts in rows:
        needed = max(needed[0], counts[0]), max(needed[1], counts[1])
        if parts and parts[-1][0] == name and parts[-1][3] == needed:
            parts[-1] = (name, parts[-1][1], y + 1, needed)
        else:
            parts.append((name, y, y + 1, needed))
    places = dict(uploaded)
    made = [_early(parts, places, timeline)]
    while joints := [i for i in range(len(parts) - 1) if parts[i][0] == parts[i + 1][0]]:
        trials = [_joined(parts, at) for at in joints]
        parts = min(trials, key=lambda trial: _early(trial, places, timeline).end)
        made.append(_early(parts, places, timeline))
    return min(made, key=lambda early: early.end + _RELEASE_CYCLES * len(early.releases))


def _joined(parts: list[_Part], at: int) -> list[_Part]:
    """Two parts as one, which waits as the later one does."""
    name, first, _, _ = parts[at]
    _, _, end, counts = parts[at + 1]
    return [*parts[:at], (name, first, end, counts), *parts[at + 2 :]]


def _early(parts: Sequence[_Part], places: Mapping[str, Placement], timeline: Timeline) -> Early:
    releases, now = [], 0
    for name, first, end, counts in parts:
        cycle = _cycle(counts, timeline)
        releases.append(Release(tensor=name, rows=(first, end), completed=counts, cycle=cycle))
        now = max(now, cycle) + (end - first) * _row_bytes(places[name])
    return Early(tuple(releases), now)


def _cycle(counts: tuple[int, int], timeline: Timeline) -> int:
    """Returns the cycle at which so many instructions of each stream have been completed."""
    return max(
        (
            stream[count - 1].completion
            for stream, count in zip(timeline.streams, counts, strict=True)
            if count
        ),
        default=0,
    )


def _row_bytes(place: Placement) -> int:
    return place.width * place.channels


def _rows(place: Placement, timeline: Timeline, word: int) -> Iterator[tuple[int, int]]:
    """For each row, after how many instructions of each stream nothing touches its words."""
    last = [[0] * place.height for _ in timeline.streams]
    for counts, stream in zip(last, timeline.streams, strict=True):
        for number, issued in enumerate(stream, start=1):
            for region in (*issued.instruction.reads, *issued.instruction.writes):
                other = region.place
                begin = other.address + region.rows[0] * other.row_pitch
                end = other.address + region.rows[1] * other.row_pitch
                # words of the memory that they share count as well
                first = (begin // word * word - place.address) // place.row_pitch
                behind = -(-(-(-end // word) * word - place.address) // place.row_pitch)
                for y in range(max(first, 0), min(behind, place.height)):
                    counts[y] = number
    yield from zip(*last, strict=True)

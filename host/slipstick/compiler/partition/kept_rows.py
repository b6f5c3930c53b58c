"""Rows of an input that are on the chip from the tile before: they need not come again.

A stripe reads some rows that the stripe before reads as well: the halo. They are kept if the next
stripe lies so that these rows are where it wants them, and the new ones come beside them.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from slipstick_rtl.config import Configuration

from ...program.steps import Part, Placement
from .subprograms import Tile


def missing(part: Part, there: Iterable[Part]) -> Iterator[Part]:
    """Yields the rows of a box that no other box of the same tensor holds at the same place."""
    place, first = part.placement, part.origin[0]
    rows = set(range(first, first + place.height))
    for other in there:
        rows -= set(_rows_at_same_place(part, other))
    # numbers less their ranks are equal within a run of rows
    for _, members in itertools.groupby(enumerate(sorted(rows)), lambda each: each[1] - each[0]):
        wanted = [row for _, row in members]
        address = place.address + (wanted[0] - first) * place.row_pitch
        yield dataclasses.replace(
            part,
            placement=dataclasses.replace(place, address=address, height=len(wanted)),
            origin=(wanted[0], *part.origin[1:]),
        )


def _rows_at_same_place(part: Part, other: Part) -> range:
    """The rows of another box that lie where those of a box are wanted."""
    if (part.whole, part.origin[1:]) != (other.whole, other.origin[1:]):
        return range(0)
    place, theirs = part.placement, other.placement
    if _line(place) != _line(theirs):
        return range(0)
    offset = (part.origin[0] - other.origin[0]) * place.row_pitch
    if place.address != theirs.address + offset:
        return range(0)
    return range(other.origin[0], other.origin[0] + theirs.height)


def _line(place: Placement) -> tuple[int, int, int, int]:
    return place.row_pitch, place.pixel_pitch, place.width, place.channels


def shift(before: Tile, tile: Tile) -> int | None:
    """Finds how many bytes behind a tile the next one must lie for common rows of an input to stay.

    None if there are no such rows, or something else comes to their place.
    """
    made = [before.places[operation.result] for operation in before.job.operations]
    for name in tile.job.inputs:
        if name not in before.job.inputs:
            continue
        mine, theirs = tile.job.regions[name], before.job.regions[name]
        place, other = tile.places[name], before.places[name]
        first, end = max(mine.rows[0], theirs.rows[0]), min(mine.rows[1], theirs.rows[1])
        same_columns = (mine.columns, mine.channels) == (theirs.columns, theirs.channels)
        same_view = tile.job.views.get(name) == before.job.views.get(name)
        if first >= end or not (same_columns and same_view) or _line(place) != _line(other):
            continue
        low = other.address + (first - theirs.rows[0]) * other.row_pitch
        kept = low, low + (end - first) * other.row_pitch
        if any(_meet(kept, _span(result)) for result in made):
            continue
        return other.address - place.address + (mine.rows[0] - theirs.rows[0]) * place.row_pitch
    return None


def kept_base(before: Tile, base: int, tile: Tile, hardware: Configuration) -> int | None:
    """Finds the base at which a tile after one at ``base`` keeps rows; the others come meanwhile.

    None if nothing stays, the memory ends before it, or the tile before uses the places of what
    comes. Where the inputs are the same, nothing else matters.
    """
    distance = shift(before, tile)
    if distance is None or before.job.kept or tile.job.kept:
        return None
    found, top = base + distance, hardware.activation_bytes - tile.activation_bytes
    step = max(hardware.lanes, hardware.rows if hardware.aligned else 1)
    if found % step or not 0 <= found <= top:
        return None
    if distance < 0 and not _leaves_room(tile, -distance, top):
        return None
    used = [_span(place) for place in before.places.values()]
    there = {name: before.job.regions[name] for name in before.job.inputs}
    for name in tile.job.inputs:
        place, rows = tile.places[name], tile.job.regions[name].rows
        if there.get(name) == tile.job.regions[name]:
            return found
        if name in there:
            theirs = there[name].rows
            low, high = max(rows[0], theirs[0]), min(rows[1], theirs[1])
            spans = [(rows[0], low), (high, rows[1])] if low < high else [rows]
        else:
            spans = [rows]
        for first, end in spans:
            start = place.address + distance + (first - rows[0]) * place.row_pitch
            coming = start, start + (end - first) * place.row_pitch
            if first < end and any(_meet(coming, span) for span in used):
                return None
    return found


def first_base(tile: Tile, following: Tile, hardware: Configuration) -> int | None:
    """Finds a tile's base from which the next ones go down to the memory's start, if they do."""
    distance, top = shift(tile, following) or 0, hardware.activation_bytes - tile.activation_bytes
    if distance >= 0 or not _leaves_room(tile, -distance, top):
        return None
    base = top // -distance * -distance
    return base - base % max(hardware.lanes, hardware.rows if hardware.aligned else 1)


def _leaves_room(tile: Tile, step: int, top: int) -> bool:
    """Tells whether the last tile that goes down leaves room for the first one behind it.

    True as well if the memory has no room for two tiles.
    """
    size = tile.activation_bytes
    return size > top or size <= top // step * step


def are_apart(some: Sequence[Placement], others: Iterable[Placement]) -> bool:
    """Tells whether no place of some meets one of others."""
    return not any(_meet(_span(place), _span(other)) for other in others for place in some)


def _span(place: Placement) -> tuple[int, int]:
    return place.address, place.end


def _meet(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] < other[1] and other[0] < span[1]

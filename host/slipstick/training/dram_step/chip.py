"""Shares the chip's memories out: pitches of tensors, places that do not meet, rings of words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import (
    Buffer,
    assign_pitches,
    make_buffers,
    round_up,
)
from ...program.steps import Placement
from .works import Key, Work, key_of, view_of

Pitches = Mapping[Key, tuple[int, int]]
"""Pitches of rows and of pixels, in bytes."""


def choose_pitches(works: Sequence[Work], configuration: Configuration) -> Pitches:
    """The pitches of all tensors that works leave on the chip for each other.

    Pixels side by side begin in different slots of the port, so that the DMA comes to its turn.

    Parameters
    ----------
    works : sequence of Work
    configuration : Configuration
    """
    tensors = {key_of(each): each for work in works for each in (*work.reads, *work.writes)}
    names = {str(key): key for key in tensors}
    views = {name: view_of(tensors[key]) for name, key in names.items()}
    # dense rows of DRAM have no gaps on the chip
    by_device = {name for name, key in names.items() if not _is_packed(tensors[key])}
    convolutions = [each for work in works for each in work.convolutions()]
    buffers = make_buffers(convolutions, views, by_device)
    for name, view in views.items():
        buffers.setdefault(name, Buffer(name, view, name in by_device, names=[name]))
    together = [
        (str(key_of(first)), str(key_of(second)))
        for work in works
        for first, second in work.together
    ]
    assign_pitches(convolutions, buffers, configuration, together=together, turning=by_device)
    pitches = {key: buffers[name].pitches for name, key in names.items()}
    _widen(works, pitches, together, names)
    return pitches


def _is_packed(tensor: DramTensor) -> bool:
    return tensor.dense and tensor.channels != 8 * tensor.pixel_words


def _widen(
    works: Sequence[Work],
    pitches: dict[Key, tuple[int, int]],
    together: Sequence[tuple[str, str]],
    names: Mapping[str, Key],
) -> None:
    """Rows hold all columns that works write; those of tensors with equal pitches as well."""
    for work in works:
        for tensor in work.writes:
            row, pixel = pitches[key_of(tensor)]
            pitches[key_of(tensor)] = max(row, work.least_row_pitch(tensor, pixel)), pixel
    changed = True
    while changed:
        changed = False
        for first, second in ((names[one], names[other]) for one, other in together):
            most = max(pitches[first], pitches[second])
            changed |= pitches[first] != most or pitches[second] != most
            pitches[first] = pitches[second] = most


def placed(tensor: DramTensor, address: int, pitches: Pitches) -> Placement:
    """A tensor at an address."""
    row, pixel = pitches[key_of(tensor)]
    return Placement(address, row, pixel, tensor.height, tensor.width, tensor.channels)


@dataclass(frozen=True)
class Lifetime:
    """Bytes that are needed from one work to another.

    Parameters
    ----------
    size : int
    first, last : int
        Works.
    before, behind : int
        Works around these, during which it is loaded and stored if there is room.
    """

    size: int
    first: int
    last: int
    before: int = 0
    behind: int = 0

    def works(self, count: int, share: float) -> frozenset[int]:
        """Those during which it has its bytes, of so many works that are repeated.

        Parameters
        ----------
        count : int
        share : float
            Of the works around.
        """
        first = self.first - math.ceil(share * self.before)
        last = self.last + math.ceil(share * self.behind)
        return frozenset(number % count for number in range(first, last + 1))


def allocate(
    lifetimes: Sequence[Lifetime], count: int, share: float, step: int
) -> tuple[list[int], int]:
    """Places bytes so that those that are needed at a time do not meet.

    Parameters
    ----------
    lifetimes : sequence of Lifetime
    count : int
        Works, which are repeated for each image.
    share : float
        Of the works around lifetimes that are theirs too.
    step : int
        Places are multiples of it.

    Returns
    -------
    (list of int, int)
        The place of each, and the end of all.
    """
    works = [each.works(count, share) for each in lifetimes]
    # the largest first, each at the lowest place
    order = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, lifetimes[n].first))
    places, end, done = [0] * len(lifetimes), 0, list[int]()
    for number in order:
        others = sorted(
            (places[n], places[n] + lifetimes[n].size) for n in done if works[n] & works[number]
        )
        place = 0
        for begin, behind in others:
            if place + lifetimes[number].size <= begin:
                break
            place = max(place, round_up(behind, step))
        places[number] = place
        end = max(end, place + lifetimes[number].size)
        done.append(number)
    return places, end


class Ring:
    """Words of a memory that are given one behind the other, and from the first on again.

    Parameters
    ----------
    first, size : int
        The first word that may be given, and the memory's words.
    """

    def __init__(self, first: int, size: int) -> None:
        self._first, self._size, self._next = first, size, first

    @property
    def room(self) -> int:
        """Words that may be given at once."""
        return self._size - self._first

    def take(self, words: int) -> int:
        """The first of so many words."""
        if self._next + words > self._size:
            self._next = self._first
        place = self._next
        self._next += words
        return place


@dataclass(frozen=True)
class Rings:
    """Words of the memories of instructions and weights.

    Parameters
    ----------
    instructions, weights : Ring
    """

    instructions: Ring
    weights: Ring

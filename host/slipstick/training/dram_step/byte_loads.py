"""Brings bytes of DRAM to bytes of the activation memory in any order, with few LOADs.

Neighbours that stay neighbours come as parts of words. Bytes of several words that become
neighbours come in blocks that the DMA turns (``Target.TURNED``): eight words become eight runs.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from slipstick_rtl.dma.transfer import TURNED_WORDS, WORD_BYTES, Operation, Target, Transfer

_MOST_RUNS = 1 << 16
_LONGEST_PITCH = (1 << 16) - 1
"""Largest distance from run to run, in bytes."""
_COMPARED = 64
"""Boxes, the first of which may have any of the others behind it as its next row."""


class _Box(NamedTuple):
    """Runs of bytes at equal distances, a row of a LOAD.

    Parameters
    ----------
    chip, word : int
        Of the first one.
    runs : int
    steps : (int, int)
        From one to the next on the chip; from one to the next, or of a turned block from word to
        word, in DRAM.
    size : int
        Bytes of a run.
    target : Target
    """

    chip: int
    word: int
    runs: int
    steps: tuple[int, int]
    size: int
    target: Target

    def moved(self, apart: tuple[int, int]) -> "_Box":
        """The same box elsewhere."""
        return self._replace(chip=self.chip + apart[0], word=self.word + apart[1])

    @property
    def kind(self) -> Hashable:
        """Boxes of a kind may be rows of one LOAD."""
        return self[2:]


class _Column(NamedTuple):
    """Bytes of several words, each the same one of its word, that become neighbours.

    Parameters
    ----------
    chip, word : int
        Of the first one.
    place : int
        The byte of each word.
    size : int
        Words.
    step : int
        From word to word.
    """

    chip: int
    word: int
    place: int
    size: int
    step: int


def byte_loads(chip: np.ndarray, sources: np.ndarray) -> Iterator[Transfer]:
    """LOADs that bring bytes to their places, and write no others.

    Parameters
    ----------
    chip : array of int
        The byte of the activation memory of each, in rising order.
    sources : array of int
        The byte of DRAM.
    """
    in_columns = np.zeros(len(chip), bool)
    boxes = list[_Box]()
    columns = list[_Column]()
    for first, count in _columns(chip, sources):
        in_columns[first : first + count] = True
        columns += _cut_column(chip, sources, first, count)
    for size, first in _parts_of_words(chip, sources, ~in_columns):
        if sources[first] % WORD_BYTES:
            columns += [_column(chip, sources, k, 1, 0) for k in range(first, first + size)]
        else:
            place = int(chip[first]), int(sources[first]) // WORD_BYTES
            boxes.append(_Box(*place, 1, (0, 0), size, Target.ACTIVATIONS))
    yield from _loads([*_joined(boxes), *_blocks(columns)])


def _columns(chip: np.ndarray, sources: np.ndarray) -> Iterator[tuple[int, int]]:
    """Neighbours that come from other words at equal distances: first one and count."""
    steps = np.diff(sources)
    fits = (np.diff(chip) == 1) & (steps > 0) & (steps % WORD_BYTES == 0)
    fits &= steps <= _LONGEST_PITCH * WORD_BYTES
    begin = 0
    while begin < len(steps):
        if not fits[begin]:
            begin += 1
            continue
        end = begin + 1
        while end < len(steps) and fits[end] and steps[end] == steps[begin]:
            end += 1
        yield begin, end - begin + 1
        begin = end + 1


def _cut_column(chip: np.ndarray, sources: np.ndarray, first: int, count: int) -> Iterator[_Column]:
    step = int(sources[first + 1] - sources[first]) // WORD_BYTES
    for begin in range(first, first + count, TURNED_WORDS):
        yield _column(chip, sources, begin, min(TURNED_WORDS, first + count - begin), step)


def _column(chip: np.ndarray, sources: np.ndarray, first: int, count: int, step: int) -> _Column:
    word, place = divmod(int(sources[first]), WORD_BYTES)
    return _Column(int(chip[first]), word, place, count, step)


def _parts_of_words(
    chip: np.ndarray, sources: np.ndarray, some: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Neighbours of a word that stay neighbours: count and first one."""
    goes_on = (np.diff(chip) == 1) & (np.diff(sources) == 1) & (sources[1:] % WORD_BYTES != 0)
    goes_on &= some[1:] & some[:-1]
    numbers = np.flatnonzero(some)
    begins = numbers[~np.concatenate([[False], goes_on])[numbers]]
    for first in begins.tolist():
        end = first + 1
        while end < len(chip) and goes_on[end - 1]:
            end += 1
        yield end - first, first


def _blocks(columns: Sequence[_Column]) -> Iterator[_Box]:
    """Columns of the bytes 0, 1, ... of the same words, at equal distances, are a block."""

    def words_of(column: _Column) -> tuple[int, ...]:
        return column.word, column.size, column.step

    for (word, size, step), same in groupby(sorted(columns, key=words_of), words_of):
        waiting = sorted(same, key=lambda column: (column.place, column.chip))
        while waiting:
            chips = [waiting.pop(0)]
            for column in list(waiting):
                pitch = column.chip - chips[-1].chip
                behind = chips[0].place == 0 and column.place == chips[-1].place + 1
                alike = len(chips) == 1 or pitch == chips[1].chip - chips[0].chip
                if behind and alike and 0 <= pitch <= _LONGEST_PITCH:
                    chips.append(column)
                    waiting.remove(column)
            first = chips[0]
            runs, pitch = len(chips), chips[-1].chip - chips[-2].chip if len(chips) > 1 else 0
            if first.place:
                # all runs lie upon each other, and the last one stays
                runs, pitch = first.place + 1, 0
            yield _Box(first.chip, word, runs, (pitch, step), size, Target.TURNED)


def _joined(boxes: Sequence[_Box]) -> Iterator[_Box]:
    """Boxes of one run become boxes of more runs, at equal distances."""
    begin = 0
    while begin < len(boxes):
        first, end = boxes[begin], begin + 1
        steps = (0, 0)
        while end < len(boxes) and end - begin < _MOST_RUNS:
            apart = boxes[end].chip - boxes[end - 1].chip, boxes[end].word - boxes[end - 1].word
            if end - begin == 1:
                steps = apart
            fits = apart == steps and 0 <= min(apart) and max(apart) <= _LONGEST_PITCH
            if not fits or boxes[end].size != first.size:
                break
            end += 1
        yield first._replace(runs=end - begin, steps=steps if end - begin > 1 else (0, 0))
        begin = end


def _loads(boxes: Sequence[_Box]) -> Iterator[Transfer]:
    """Boxes of a kind at equal distances are rows of a LOAD."""
    kinds = dict[Hashable, list[_Box]]()
    for box in sorted(boxes):
        kinds.setdefault(box.kind, []).append(box)
    for alike in kinds.values():
        waiting = set(alike)
        for number, first in enumerate(alike):
            if first not in waiting:
                continue
            rows, apart = _longest(first, alike[number + 1 : number + _COMPARED], waiting)
            waiting.difference_update(rows)
            yield Transfer(
                operation=Operation.LOAD,
                target=first.target,
                chip=first.chip,
                dram=first.word,
                run_bytes=first.size,
                runs=first.runs,
                rows=len(rows),
                chip_run_pitch=first.steps[0],
                dram_run_pitch=first.steps[1],
                chip_row_pitch=apart[0],
                dram_row_pitch=apart[1],
            )


def _longest(
    first: _Box, others: Sequence[_Box], waiting: Collection[_Box]
) -> tuple[list[_Box], tuple[int, int]]:
    """A box with others like it at equal distances, as many as there are, and the distance."""
    best, apart = [first], (0, 0)
    for other in others:
        distance = other.chip - first.chip, other.word - first.word
        if min(distance) < 0:
            continue
        rows, behind = [first], first.moved(distance)
        while behind in waiting and len(rows) < _MOST_RUNS:
            rows.append(behind)
            behind = behind.moved(distance)
        if len(rows) > len(best):
            best, apart = rows, distance
    return best, apart

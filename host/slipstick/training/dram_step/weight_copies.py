"""Copies weights from their master words to where programs load them from.

A program's constants lie in DRAM as the weight memory has them: forward and backward programs have
the same weights in other orders. The DMA copies them by way of the chip. A LOAD brings single
bytes, one from each master word, to where the constants have them; a STORE brings whole words back.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

from ...devices.link.regions import pieces
from ...runtime.dram_port import LONGEST_RUN
from .listing import Listed
from .recorded import RecordedGradient
from .segments import Template

_DIGIT = 126
"""Of a probe: weights are 2..127 there, and 1 in the first one."""
PROBES = 4
"""With which weights are found."""
MOST_WEIGHTS = _DIGIT ** (PROBES - 1)
"""Of a layer, that probes can tell from one another."""
_MOST_RUNS = 1 << 16
_LONGEST_PITCH = (1 << 16) - 1
"""From run to run."""
_COMPARED = 64
"""Runs, the first of which may have any of the others behind it in a box."""


def probe(shape: tuple[int, ...], number: int) -> np.ndarray:
    """Weights that tell which they are: all are 1, or a digit of their number and 2 more.

    Parameters
    ----------
    shape : tuple of int
    number : int
        Of the probe, 0..PROBES - 1.

    Returns
    -------
    array of int8
        None is 0, so all are loaded.
    """
    if number == 0:
        return np.ones(shape, np.int8)
    numbers = np.arange(np.prod(shape)).reshape(shape)
    return (numbers // _DIGIT ** (number - 1) % _DIGIT + 2).astype(np.int8)


def find_weights(blocks: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Finds weights in constants.

    Parameters
    ----------
    blocks : sequence of bytes
        The same constants, made of each probe.

    Returns
    -------
    places : array of int
        Bytes that are weights, in rising order.
    numbers : array of int
        Which they are.
    """
    ones, *digits = (np.frombuffer(block, np.uint8) for block in blocks)
    places = np.flatnonzero(ones != digits[0])
    numbers = np.zeros(len(places), np.int64)
    for number, digit in enumerate(digits):
        numbers += (digit[places].astype(np.int64) - 2) * _DIGIT**number
    return places, numbers


def copy_weights(
    listed: Listed,
    probes: Sequence[Sequence[Template]],
    gradients: Mapping[str, RecordedGradient],
    configuration: Configuration,
) -> Iterator[Transfer]:
    """Brings the weights of a list's programs to DRAM, and takes the CRC from LOADs of them.

    Parameters
    ----------
    listed : Listed
        Whose weights are those of the first probe.
    probes : sequence of sequence of Template
        The list's programs with the weights of each probe.
    gradients : mapping of RecordedGradient by layer
        Those with master words learn.
    configuration : Configuration
    """
    for same in zip(*probes, strict=True):
        work = same[0].work
        gradient = gradients.get(work.layer)
        if gradient is None or gradient.masters is None:
            continue
        made = [listed.block(work.name, each.built.constants) for each in same]
        places, numbers = find_weights([block for _, block in made])
        if not len(places):
            continue
        masters = gradient.masters.place + gradient.program.results.master_numbers()
        copy = WeightCopy(made[0][0], places, masters.reshape(-1)[numbers])
        listed.uncheck(work.name, copy.first, copy.last)
        yield from copy.transfers(configuration)


@dataclass(frozen=True)
class WeightCopy:
    """Weights of a program's constants.

    Parameters
    ----------
    place : int
        The first word of the constants in DRAM.
    places : array of int
        Bytes of them that are weights, in rising order.
    sources : array of int
        The master word of each.
    """

    place: int
    places: np.ndarray
    sources: np.ndarray

    @property
    def first(self) -> int:
        """The first word with a weight."""
        return self.place + int(self.places[0]) // WORD_BYTES

    @property
    def last(self) -> int:
        """The last word with a weight."""
        return self.place + int(self.places[-1]) // WORD_BYTES

    def transfers(self, configuration: Configuration) -> Iterator[Transfer]:
        """Yields what the DMA does, by way of the beginning of the activation memory.

        Parameters
        ----------
        configuration : Configuration
        """
        most = min(configuration.activation_bytes, LONGEST_RUN)
        begin = self.first
        for low, high in pieces((self.last + 1 - begin) * WORD_BYTES, most):
            word, size = begin + low // WORD_BYTES, high - low
            first = (word - self.place) * WORD_BYTES
            some = slice(*np.searchsorted(self.places, (first, first + size)).tolist())
            chip, sources = self.places[some] - first, self.sources[some]
            if not len(chip):
                continue
            if len(chip) < size:
                # what is no weight stays
                yield Transfer(operation=Operation.LOAD, dram=word, run_bytes=size)
            yield from boxes(chip, sources)
            yield Transfer(operation=Operation.STORE, dram=word, run_bytes=size)


def boxes(chip: np.ndarray, words: np.ndarray) -> Iterator[Transfer]:
    """LOADs of single bytes, in few boxes.

    Parameters
    ----------
    chip : array of int
        The byte of the activation memory of each, in rising order.
    words : array of int
        The word of DRAM whose first byte it is.
    """
    runs = list[_Run]()
    for first, count in _grouped(chip, words):
        steps = (0, 0)
        if count > 1:
            steps = int(chip[first + 1] - chip[first]), int(words[first + 1] - words[first])
        runs.append(_Run(int(chip[first]), int(words[first]), count, steps))
    waiting = set(runs)
    for number, first in enumerate(runs):
        if first not in waiting:
            continue
        rows, apart = _longest_box(first, runs[number + 1 : number + _COMPARED], waiting)
        waiting.difference_update(rows)
        yield Transfer(
            operation=Operation.LOAD,
            chip=first.chip,
            dram=first.word,
            run_bytes=1,
            runs=first.length,
            rows=len(rows),
            chip_run_pitch=first.steps[0],
            dram_run_pitch=first.steps[1],
            chip_row_pitch=apart[0],
            dram_row_pitch=apart[1],
        )


class _Run(NamedTuple):
    """Bytes at equal distances.

    Parameters
    ----------
    chip, word : int
        Of the first one.
    length : int
    steps : (int, int)
        From one to the next, on the chip and in DRAM.
    """

    chip: int
    word: int
    length: int
    steps: tuple[int, int]

    def moved(self, apart: tuple[int, int]) -> "_Run":
        """The same run elsewhere."""
        return self._replace(chip=self.chip + apart[0], word=self.word + apart[1])


def _longest_box(
    first: _Run, others: Sequence[_Run], waiting: Collection[_Run]
) -> tuple[list[_Run], tuple[int, int]]:
    """A run with others like it at equal distances, as many as there are, and the distance."""
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


def _grouped(chip: np.ndarray, words: np.ndarray) -> Iterator[tuple[int, int]]:
    """Neighbours at equal distances, none to the left: first one and count."""
    begin, total = 0, len(chip)
    across, along = np.diff(chip), np.diff(words)
    fits = (across <= _LONGEST_PITCH) & (along >= 0) & (along <= _LONGEST_PITCH)
    goes_on = fits[1:] & fits[:-1] & (np.diff(across) == 0) & (np.diff(along) == 0)
    # the first distance behind each place that is another one
    stops = np.flatnonzero(~goes_on) + 1
    while begin < total:
        if begin + 1 == total or not fits[begin]:
            count = 1
        else:
            at = np.searchsorted(stops, begin, side="right")
            stop = int(stops[at]) if at < len(stops) else total - 1
            count = min(stop - begin + 1, _MOST_RUNS)
        yield begin, count
        begin += count

"""Copies weights from their master rows to where programs load them from.

A program's constants lie in DRAM as the weight memory has them: forward and backward programs have
the same weights in other orders. The DMA copies them by way of the chip. LOADs bring them to where
the constants have them: words of neighbours in the forward order, turned blocks in the backward
order (:mod:`.byte_loads`). A STORE brings whole words back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    MASTER_WORDS,
    WORD_BYTES,
    Operation,
    Transfer,
)

from ...devices.link.regions import pieces
from ...runtime.dram_port import LONGEST_RUN
from .byte_loads import byte_loads
from .listing import Listed
from .recorded import RecordedGradient
from .segments import Template

_DIGIT = 126
"""Values of a probe's weights: they are 2..127, but in the first probe all are 1."""
PROBES = 4
"""With which weights are found."""
MOST_WEIGHTS = _DIGIT ** (PROBES - 1)
"""Most weights of a layer that probes can tell from one another."""


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
        Those with master rows learn.
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
        weights = weight_bytes(gradient.program.results.sum_numbers())
        sources = gradient.masters.place * WORD_BYTES + weights.reshape(-1)[numbers]
        copy = WeightCopy(made[0][0], places, sources)
        listed.uncheck(work.name, copy.first, copy.last)
        yield from copy.transfers(configuration)


def weight_bytes(numbers: np.ndarray) -> np.ndarray:
    """Bytes of weights, counted from the first master row on.

    Parameters
    ----------
    numbers : array of int
        Of the sums that the rows are updated with.
    """
    row, place = np.divmod(numbers.astype(np.int64), GROUP_CELLS)
    return ((row + 1) * MASTER_WORDS - 1) * WORD_BYTES + place


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
        The byte of DRAM of each.
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
            yield from byte_loads(chip, sources)
            yield Transfer(operation=Operation.STORE, dram=word, run_bytes=size)

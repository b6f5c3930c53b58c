"""The contents that the memory test fills a DRAM with: no two blocks of it are equal."""

import dataclasses
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

_MOST_SPAN_BYTES = 1 << 20
"""Most bytes that one instruction moves: some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Blocks side by side in DRAM that one instruction moves.

    Each is a window of the *stage*, random bytes in the activation memory; from block to block the
    window moves on by a word.

    Parameters
    ----------
    stage : int
        Number of the stage.
    offset : int
        Of the first block's window in the stage.
    word : int
        Of DRAM.
    block_bytes, blocks : int
    """

    stage: int
    offset: int
    word: int
    block_bytes: int
    blocks: int

    @property
    def bytes(self) -> int:
        """Counts the bytes of all blocks."""
        return self.block_bytes * self.blocks

    def split(self) -> Iterator["Span"]:
        """Gives each of its blocks as a span."""
        for k in range(self.blocks):
            yield dataclasses.replace(
                self,
                offset=self.offset + WORD_BYTES * k,
                word=self.word + self.block_bytes // WORD_BYTES * k,
                blocks=1,
            )

    def store(self) -> Transfer:
        """Returns the instruction that writes the blocks, out of the stage."""
        return self._transfer(Operation.STORE, self.offset, WORD_BYTES)

    def load(self, crc: int) -> Transfer:
        """Returns the instruction that checks the blocks; it spoils the stage."""
        load = self._transfer(Operation.LOAD, 0, 0)
        return dataclasses.replace(load, checked=True, crc=crc)

    def _transfer(self, operation: Operation, chip: int, pitch: int) -> Transfer:
        return Transfer(
            operation=operation,
            chip=chip,
            dram=self.word,
            run_bytes=self.block_bytes,
            runs=self.blocks,
            chip_run_pitch=pitch,
            dram_run_pitch=self.block_bytes // WORD_BYTES,
        )


def spans(chip_bytes: int, covered_bytes: int, stage_bytes: int) -> Iterator[Span]:
    """Gives the spans of a memory.

    Parameters
    ----------
    chip_bytes : int
    covered_bytes : int
        From the beginning of the memory and up to its end, half of them each.
    stage_bytes : int
        Blocks have half of it.
    """
    block = stage_bytes // 2
    windows = block // WORD_BYTES + 1
    number = 0
    for begin, end in _areas(chip_bytes // WORD_BYTES, covered_bytes // WORD_BYTES):
        while begin < end:
            stage, window = divmod(number, windows)
            left = WORD_BYTES * (end - begin)
            most = min(left // block, windows - window, _MOST_SPAN_BYTES // block)
            span = Span(
                stage=stage,
                offset=WORD_BYTES * window,
                word=begin,
                block_bytes=min(block, left),
                blocks=max(most, 1),
            )
            yield span
            number += span.blocks
            begin += span.bytes // WORD_BYTES


def _areas(words: int, covered: int) -> list[tuple[int, int]]:
    if covered == words:
        return [(0, words)]
    return [(0, covered - covered // 2), (words - covered // 2, words)]


class Pattern:
    """Random stages.

    Parameters
    ----------
    stage_bytes : int
    inverted : bool
        Every bit is the other one.
    """

    def __init__(self, stage_bytes: int, *, inverted: bool) -> None:
        self._stage_bytes = stage_bytes
        self._flips = 0xFF if inverted else 0

    def stage(self, number: int) -> bytes:
        """Returns the bytes of a stage."""
        return (_random_bytes(number, self._stage_bytes) ^ self._flips).tobytes()

    def contents(self, span: Span) -> bytes:
        """Returns what a span holds."""
        stage = self.stage(span.stage)
        return b"".join(stage[part.offset :][: part.block_bytes] for part in span.split())

    def crc(self, span: Span) -> int:
        """Returns the CRC-32 of what a span holds."""
        return zlib.crc32(self.contents(span))


@lru_cache(maxsize=2)
def _random_bytes(number: int, count: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, count, np.uint8)

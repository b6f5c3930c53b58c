"""Says what a DMA instruction touches, and how long it takes: so lists can be put in order."""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    MASTER_WORDS,
    WORD_BYTES,
    Operation,
    Target,
    Transfer,
)

from ...compiler.timing.dram_timeline import predict

_UPDATED_ROWS = 8
"""Rows that an UPDATE reads at a time, and then writes."""
_UPDATE_CYCLES = 30
"""Cycles that each time takes beside its words: the DRAM's bus turns twice."""
_INSTRUCTION_WORD = 4
"""Bytes of a word of the instruction memory."""


class Memory(IntEnum):
    """A memory, and the unit of its addresses."""

    ACTIVATIONS = 0
    """Bytes."""

    WEIGHTS = 1
    """Groups of eight cells."""

    INSTRUCTIONS = 2
    """Words of 32 bits."""

    DRAM = 3
    """Words of eight bytes."""


class Access(NamedTuple):
    """Addresses of a memory that are read or written, from the first to behind the last."""

    memory: Memory
    begin: int
    end: int
    writes: bool

    def meets(self, other: "Access") -> bool:
        """Returns whether the order of the two matters."""
        return (
            self.memory is other.memory
            and (self.writes or other.writes)
            and self.begin < other.end
            and other.begin < self.end
        )


class Step(NamedTuple):
    """A LOAD, STORE or RUN, and what it does.

    Parameters
    ----------
    transfer : Transfer
    accesses : sequence of Access
        Of a RUN those of its program; accumulators, tables and notes need none, as runs keep their
        order.
    cycles : int
        That it takes, predicted.
    busy : int
        Of a RUN, cycles in which the post-processor reads or writes the activation memory: a STORE
        waits for it.
    """

    transfer: Transfer
    accesses: Sequence[Access]
    cycles: int
    busy: int = 0

    @property
    def runs(self) -> bool:
        """It is a RUN."""
        return self.transfer.operation is Operation.RUN

    @property
    def is_busy(self) -> bool:
        """It is a RUN whose post-processor is at work for more than half of it."""
        return 2 * self.busy > self.cycles

    @property
    def stores(self) -> bool:
        """It reads the activation memory: a STORE or an UPDATE."""
        return self.transfer.operation in (Operation.STORE, Operation.UPDATE)


def moving(transfer: Transfer, configuration: Configuration) -> Step:
    """The step of a LOAD, STORE or UPDATE.

    Boxes count as all bytes from their first to their last one.

    Parameters
    ----------
    transfer : Transfer
    configuration : Configuration
        With DRAM.
    """
    if transfer.operation is Operation.UPDATE:
        return _updating(transfer, configuration)
    stores = transfer.operation is Operation.STORE
    pitches = transfer.dram_run_pitch, transfer.dram_row_pitch
    dram = transfer.dram + _span(transfer.rows, transfer.dram_runs, *pitches, transfer.run_words)
    memory, chip = _on_chip(transfer, configuration)
    accesses = (
        Access(memory, transfer.chip, chip, not stores),
        Access(Memory.DRAM, transfer.dram, dram, stores),
    )
    runs = transfer.dram_runs * transfer.rows
    lone = transfer.target is Target.NINTHS
    cycles = _cycles(stores, transfer.run_words, runs, lone, configuration)
    return Step(transfer, accesses, cycles)


def _updating(transfer: Transfer, configuration: Configuration) -> Step:
    """The step of an UPDATE: master rows are read and written."""
    pitches = transfer.chip_run_pitch, transfer.chip_row_pitch
    chip = transfer.chip + _span(transfer.rows, transfer.runs, *pitches, transfer.run_bytes)
    accesses = (
        Access(Memory.ACTIVATIONS, transfer.chip, chip, False),
        Access(Memory.DRAM, transfer.dram, transfer.dram + transfer.words, True),
    )
    blocks = -(-transfer.rows // _UPDATED_ROWS)
    words = MASTER_WORDS * _UPDATED_ROWS
    cycles = sum(_cycles(stores, words, blocks, False, configuration) for stores in (False, True))
    return Step(transfer, accesses, cycles + blocks * _UPDATE_CYCLES)


def _span(rows: int, runs: int, run_pitch: int, row_pitch: int, size: int) -> int:
    return (rows - 1) * row_pitch + (runs - 1) * run_pitch + size


def _on_chip(transfer: Transfer, configuration: Configuration) -> tuple[Memory, int]:
    """The memory of a transfer, and the address behind its last one there."""
    if transfer.target.boxed:
        pitches = transfer.chip_run_pitch, transfer.chip_row_pitch
        span = _span(transfer.rows, transfer.runs, *pitches, transfer.run_bytes)
        return Memory.ACTIVATIONS, transfer.chip + span
    if transfer.target is Target.INSTRUCTIONS:
        return Memory.INSTRUCTIONS, transfer.chip + -(-transfer.run_bytes // _INSTRUCTION_WORD)
    groups = transfer.run_words
    if transfer.target is Target.NINTHS:
        groups = transfer.run_bytes
    elif transfer.target is Target.WEIGHTS and configuration.ninth_bits:
        groups -= -(-groups // (GROUP_CELLS + 1))
    return Memory.WEIGHTS, transfer.chip + groups


@lru_cache(maxsize=4096)
def _cycles(stores: bool, words: int, runs: int, lone: bool, configuration: Configuration) -> int:
    """Predicts the cycles of a transfer of so many runs of so many words."""
    operation = Operation.STORE if stores else Operation.LOAD
    if lone:
        transfer = Transfer(operation=operation, target=Target.NINTHS, run_bytes=words * WORD_BYTES)
    else:
        rows, runs = (1, runs) if runs <= 1 << 16 else (-(-runs // (1 << 16)), 1 << 16)
        transfer = Transfer(operation=operation, run_bytes=words * WORD_BYTES, runs=runs, rows=rows)
    return predict((transfer,), (), configuration).end

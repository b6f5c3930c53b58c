"""The DMA: transfers between DRAM and the chip's memories, as gateware executes them."""

import zlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    MASTER_WORDS,
    SUM_BYTES,
    TRANSFER_BYTES,
    TURNED_WORDS,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
    Transfer,
)

from .training import LARGEST_MASTER, pack_masters, unpack_masters, update

Bytes = NDArray[np.uint8]


class Chip(Protocol):
    """The memories and instruction streams of the chip that the DMA reaches."""

    def write_activations(self, address: int, values: Bytes) -> None:
        """Bytes from an address on; addresses go round."""
        ...

    def read_activations(self, address: int, count: int) -> Bytes:
        """Bytes from an address on; addresses go round."""
        ...

    def write_groups(self, first: int, cells: Bytes, ninth: Bytes | None) -> None:
        """Groups of eight cells, (n, 8); without ninth bits, or with a byte for each group."""
        ...

    def write_instructions(self, first: int, words: NDArray[np.uint32]) -> None:
        """Words from an address on."""
        ...

    def run_streams(self, pcs: tuple[int, int]) -> bool:
        """Executes a run from these words of the instruction memory on.

        False if it met a bad instruction. Here a run is over when it has begun: what the DMA moves
        meanwhile must not touch what the run does, which is the program's concern.
        """
        ...


@dataclass
class GoldenDma:
    """Executes instructions.

    Parameters
    ----------
    dram : array of uint8
        All of it, in bytes.
    chip : Chip
    ninth_bits : bool
        The weight memory has them.
    training : bool
        It executes UPDATE, and turns blocks.
    """

    dram: Bytes
    chip: Chip
    ninth_bits: bool
    training: bool = False
    executed: int = 0
    status: DmaStatus = DmaStatus.OK
    _good: bool = True

    def clear(self) -> None:
        """Forgets an error."""
        self.status, self.executed = DmaStatus.OK, 0

    def execute(self, packed: bytes) -> DmaStatus:
        """An instruction from the link, with the list that it may begin; nothing after an error."""
        following: int | None = None
        while self.status is DmaStatus.OK:
            self.executed += 1
            try:
                transfer = Transfer.unpack(packed)
            except ValueError:
                transfer = None
            if transfer is None or not self._knows(transfer):
                self.status = DmaStatus.BAD_TRANSFER
                break
            if transfer.operation is Operation.JUMP:
                following = transfer.dram
            elif transfer.operation is Operation.END:
                break
            else:
                self._execute(transfer)
            if following is None:
                break
            packed = self.dram[following * WORD_BYTES :][:TRANSFER_BYTES].tobytes()
            following += TRANSFER_BYTES // WORD_BYTES
        return self.status

    def _knows(self, transfer: Transfer) -> bool:
        """Tells whether the hardware has what an instruction needs."""
        if transfer.operation is Operation.UPDATE or transfer.target is Target.TURNED:
            return self.training
        return transfer.target is not Target.NINTHS or self.ninth_bits

    def _execute(self, transfer: Transfer) -> None:
        if transfer.operation is Operation.LOAD:
            if not self._load(transfer):
                self.status = DmaStatus.MEMORY_CORRUPT
        elif transfer.operation is Operation.STORE:
            self._store(transfer)
        elif transfer.operation is Operation.UPDATE:
            self._update(transfer)
        elif transfer.operation is Operation.RUN:
            self._good = self.chip.run_streams(transfer.pcs)
        elif not self._good:
            self.status = DmaStatus.BAD_INSTRUCTION

    def _load(self, transfer: Transfer) -> bool:
        runs = [self._words(place, transfer.run_words) for place in _dram_runs(transfer)]
        if transfer.target.boxed:
            turned = transfer.target is Target.TURNED
            written = _turn(runs, transfer.runs) if turned else runs
            for place, run in zip(_chip_runs(transfer), written, strict=True):
                self.chip.write_activations(place, run[: transfer.run_bytes])
        elif transfer.target is not Target.INSTRUCTIONS:
            self._load_weights(transfer, runs[0].reshape(-1, WORD_BYTES))
        else:
            words = runs[0][: transfer.run_bytes].view(np.uint32)
            self.chip.write_instructions(transfer.chip, words)
        return not transfer.checked or zlib.crc32(np.concatenate(runs).tobytes()) == transfer.crc

    def _load_weights(self, transfer: Transfer, words: Bytes) -> None:
        cells, ninth = words, None
        if transfer.target is Target.NINTHS:
            ninth = words.reshape(-1)[: transfer.run_bytes]
            cells = np.zeros((len(ninth), GROUP_CELLS), np.uint8)
        elif self.ninth_bits and transfer.target is Target.CELLS:
            ninth = np.zeros(len(cells), np.uint8)
        elif self.ninth_bits:
            heads = np.arange(len(words)) % (GROUP_CELLS + 1) == 0
            cells = words[~heads]
            ninth = words[heads].reshape(-1)[: len(cells)]
        self.chip.write_groups(transfer.chip, cells, ninth)

    def _store(self, transfer: Transfer) -> None:
        """The rest of a run's last word becomes zeros."""
        for place, source in zip(_dram_runs(transfer), _chip_runs(transfer), strict=True):
            run = np.zeros(transfer.run_words * WORD_BYTES, np.uint8)
            run[: transfer.run_bytes] = self.chip.read_activations(source, transfer.run_bytes)
            self.dram[place * WORD_BYTES :][: len(run)] = run

    def _update(self, transfer: Transfer) -> None:
        """Rows of eight weights, one after the other."""
        planes = [self.chip.read_activations(at, WORD_BYTES) for at in _chip_runs(transfer)]
        rows = np.stack(planes).reshape(transfer.rows, SUM_BYTES, WORD_BYTES)
        sums = np.ascontiguousarray(rows.transpose(0, 2, 1)).view("<i4").reshape(-1)
        first, size = transfer.dram * WORD_BYTES, MASTER_WORDS * WORD_BYTES
        rows = self.dram[first : first + size * transfer.rows].reshape(-1, size)
        learned = update(unpack_masters(rows), sums, transfer.shift, LARGEST_MASTER)
        rows[:] = pack_masters(learned)

    def _words(self, place: int, count: int) -> Bytes:
        return self.dram[place * WORD_BYTES :][: count * WORD_BYTES].copy()


def _turn(words: list[Bytes], runs: int) -> list[Bytes]:
    """So many runs of each block: run j has byte j of all its words."""
    blocks = np.stack(words).reshape(-1, TURNED_WORDS, WORD_BYTES).transpose(0, 2, 1)
    return [run for block in blocks for run in block[:runs]]


def _dram_runs(transfer: Transfer) -> list[int]:
    return [
        transfer.dram + row * transfer.dram_row_pitch + run * transfer.dram_run_pitch
        for row in range(transfer.rows)
        for run in range(transfer.dram_runs)
    ]


def _chip_runs(transfer: Transfer) -> list[int]:
    return [
        transfer.chip + row * transfer.chip_row_pitch + run * transfer.chip_run_pitch
        for row in range(transfer.rows)
        for run in range(transfer.runs)
    ]

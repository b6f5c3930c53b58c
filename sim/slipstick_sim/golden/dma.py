"""The DMA: transfers between DRAM and the chip's memories, as gateware executes them."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    TRANSFER_BYTES,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
    Transfer,
)


@dataclass
class ChipMemories:
    """What the DMA reaches on the chip.

    Parameters
    ----------
    activations : array of uint8
    cells : array of uint8, (groups, 8)
        The weight memory, in groups of eight cells.
    ninth : array of uint8, (groups,)
        A bit for each cell of a group; not used without ninth bits.
    instructions : array of uint32
    """

    activations: NDArray[np.uint8]
    cells: NDArray[np.uint8]
    ninth: NDArray[np.uint8]
    instructions: NDArray[np.uint32]


@dataclass
class GoldenDma:
    """Executes instructions.

    Parameters
    ----------
    dram : array of uint8
        All of it, in bytes.
    chip : ChipMemories
    ninth_bits : bool
        The weight memory has them.
    run : callable
        Executes a run from these words of the instruction memory on; False if it met a bad
        instruction. Here a run is over when it has begun: what the DMA moves meanwhile must not
        touch what the run does, which is the program's concern.
    """

    dram: NDArray[np.uint8]
    chip: ChipMemories
    ninth_bits: bool
    run: Callable[[tuple[int, int]], bool]
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

    def _execute(self, transfer: Transfer) -> None:
        if transfer.operation is Operation.LOAD:
            if not self._load(transfer):
                self.status = DmaStatus.MEMORY_CORRUPT
        elif transfer.operation is Operation.STORE:
            self._store(transfer)
        elif transfer.operation is Operation.RUN:
            self._good = self.run(transfer.pcs)
        elif not self._good:
            self.status = DmaStatus.BAD_INSTRUCTION

    def _load(self, transfer: Transfer) -> bool:
        runs = [self._words(place, transfer.run_words) for place in _dram_runs(transfer)]
        if transfer.target is Target.ACTIVATIONS:
            for place, run in zip(_chip_runs(transfer), runs, strict=True):
                self._write(place, run[: transfer.run_bytes])
        elif transfer.target is Target.WEIGHTS:
            self._load_weights(transfer.chip, runs[0].reshape(-1, WORD_BYTES))
        else:
            words = runs[0][: transfer.run_bytes].view(np.uint32)
            for k, word in enumerate(words):
                self.chip.instructions[(transfer.chip + k) % len(self.chip.instructions)] = word
        return not transfer.checked or zlib.crc32(np.concatenate(runs).tobytes()) == transfer.crc

    def _load_weights(self, first: int, words: NDArray[np.uint8]) -> None:
        cells = words
        if self.ninth_bits:
            heads = np.arange(len(words)) % (GROUP_CELLS + 1) == 0
            cells = words[~heads]
            self.chip.ninth[first : first + len(cells)] = words[heads].reshape(-1)[: len(cells)]
        self.chip.cells[first : first + len(cells)] = cells

    def _store(self, transfer: Transfer) -> None:
        """The rest of a run's last word becomes zeros."""
        for place, source in zip(_dram_runs(transfer), _chip_runs(transfer), strict=True):
            run = np.zeros(transfer.run_words * WORD_BYTES, np.uint8)
            run[: transfer.run_bytes] = self._read(source, transfer.run_bytes)
            self.dram[place * WORD_BYTES :][: len(run)] = run

    def _words(self, place: int, count: int) -> NDArray[np.uint8]:
        return self.dram[place * WORD_BYTES :][: count * WORD_BYTES].copy()

    def _places(self, place: int, count: int) -> NDArray[np.int64]:
        """Addresses go round."""
        return (place + np.arange(count)) % len(self.chip.activations)

    def _write(self, place: int, run: NDArray[np.uint8]) -> None:
        self.chip.activations[self._places(place, len(run))] = run

    def _read(self, place: int, count: int) -> NDArray[np.uint8]:
        return self.chip.activations[self._places(place, count)]


def _dram_runs(transfer: Transfer) -> list[int]:
    return [
        transfer.dram + row * transfer.dram_row_pitch + run * transfer.dram_run_pitch
        for row in range(transfer.rows)
        for run in range(transfer.runs)
    ]


def _chip_runs(transfer: Transfer) -> list[int]:
    return [
        transfer.chip + row * transfer.chip_row_pitch + run * transfer.chip_run_pitch
        for row in range(transfer.rows)
        for run in range(transfer.runs)
    ]

"""Predicts a list for the DMA: when it moves what, and when the core works.

The DMA executes one transfer after the other, and reads the next instruction behind the data of the
one before. A RUN begins when the DMA comes to it; a WAIT ends when the run does. So some constants
for a kind of memory, the counts of words and the distances of runs are enough. They were fitted to
lists in the compiled RTL, with LiteDRAM's controller and a chip that keeps its times
(``reports/dram.json``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import TRANSFER_WORDS, WORD_BYTES, Operation, Target, Transfer
from slipstick_rtl.dram.chips import Ddr3Chip


@dataclass(frozen=True, kw_only=True)
class _Pace:
    """Describes how fast a kind of memory is.

    Parameters
    ----------
    share : float
        Of the chip's peak rate, within long runs.
    run_cycles : int
        Between the burst of a run and the next one's.
    row_cycles : int
        What it takes longer if the next one begins in another row of the chip.
    load_cycles, store_cycles : int
        From the last data of a transfer to the first of the next one.
    """

    share: float
    run_cycles: int
    row_cycles: int
    load_cycles: int
    store_cycles: int


_SDR = _Pace(share=0.965, run_cycles=1, row_cycles=6, load_cycles=26, store_cycles=18)
_DDR3 = _Pace(share=0.92, run_cycles=1, row_cycles=12, load_cycles=44, store_cycles=43)
_START_CYCLES = 60
"""Cycles of a run, beside those of its streams: from WAIT's end to the first instruction, and at
its end until all is written."""
_NINTHS_CYCLES = 8
"""Cycles of a word of ninth bits: a group's write per cycle."""


@dataclass(frozen=True)
class Span:
    """Something takes its time.

    Parameters
    ----------
    kind : str
        "load" or "store" of activations, "constants", or "run".
    begin, end : int
        Cycles since the list began.
    words : int
        Of DRAM that are moved.
    run : int
        Of a run, its number in the list.
    """

    kind: str
    begin: int
    end: int
    words: int = 0
    run: int = 0


@dataclass(frozen=True)
class DramTimeline:
    """A predicted list.

    Parameters
    ----------
    spans : tuple of Span
        In the order of the list.
    end : int
        Cycles of all of it.
    """

    spans: tuple[Span, ...]
    end: int

    def cycles(self, *kinds: str) -> int:
        """Adds up what spans of these kinds take."""
        return sum(span.end - span.begin for span in self.spans if span.kind in kinds)


def predict(
    transfers: Sequence[Transfer], runs: Sequence[int], hardware: Configuration
) -> DramTimeline:
    """The timeline of a list.

    Parameters
    ----------
    transfers : sequence of Transfer
    runs : sequence of int
        Cycles of each RUN, in their order.
    hardware : Configuration
        With DRAM.
    """
    spans = tuple(_spans(transfers, runs, hardware))
    return DramTimeline(spans, max((span.end for span in spans), default=0))


def _spans(
    transfers: Sequence[Transfer], runs: Sequence[int], hardware: Configuration
) -> Iterator[Span]:
    now = running = 0
    number, pace = 0, _pace(hardware)
    for transfer in transfers:
        now += round(TRANSFER_WORDS * _word_cycles(hardware))
        if transfer.operation is Operation.RUN:
            running = now + _START_CYCLES + runs[number]
            yield Span("run", now, running, run=number)
            number += 1
        elif transfer.operation is Operation.WAIT:
            now = max(now, running)
        elif transfer.operation in (Operation.LOAD, Operation.STORE):
            stores = transfer.operation is Operation.STORE
            length = pace.store_cycles if stores else pace.load_cycles
            length += _transfer_cycles(transfer, hardware)
            if transfer.target is Target.NINTHS:
                length = max(length, _NINTHS_CYCLES * transfer.words)
            kind = "store" if stores else "load"
            if transfer.target is not Target.ACTIVATIONS:
                kind = "constants"
            yield Span(kind, now, now + length, transfer.words)
            now += length


def _transfer_cycles(transfer: Transfer, hardware: Configuration) -> int:
    """Counts the cycles of a box: its words at the chip's rate, and what lies between its runs."""
    pace, chip = _pace(hardware), hardware.dram_chip
    assert chip is not None
    row_words = chip.columns * chip.data_bits / 8 / WORD_BYTES
    # a run that follows the one before it begins in another row as often as one is full
    runs = (transfer.dram_runs - 1) * transfer.rows, transfer.rows - 1
    pitches = transfer.dram_run_pitch, transfer.dram_row_pitch
    cycles = transfer.words * _word_cycles(hardware)
    for count, pitch in zip(runs, pitches, strict=True):
        cycles += count * (pace.run_cycles + pace.row_cycles * min(1.0, pitch / row_words))
    return round(cycles)


def _word_cycles(hardware: Configuration) -> float:
    """Counts the cycles of a word within a long run."""
    # the core's stream takes a word per cycle, however fast the memory is
    return max(1.0, WORD_BYTES / (_pace(hardware).share * hardware.dram_bytes_per_cycle))


def _pace(hardware: Configuration) -> _Pace:
    return _DDR3 if isinstance(hardware.dram_chip, Ddr3Chip) else _SDR

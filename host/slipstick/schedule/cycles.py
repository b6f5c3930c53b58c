"""The cycle model: how long each instruction takes, and when it starts beside the other stream."""

from collections.abc import Mapping
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import WORDS_PER_INSTRUCTION, Opcode

WEIGHT_OVERHEAD = 1
"""Cycles beyond R from one reduction tile's start until the next tile is ready."""

LOADER_HANDOVER = 1
"""From a CONVOLVE's last tile's start until the weight loader can take the next one."""

FETCH_CYCLES = WORDS_PER_INSTRUCTION + 5
"""From one instruction's being taken until the next one of its stream can be."""

START_CYCLES = 2 * WORDS_PER_INSTRUCTION + 5
"""From RUN until the first instructions are decoded: both streams fetch in turns."""

END_CYCLES = 1
"""From the last completion until the run is over."""

MATRIX_LATENCY = 13
"""Of window reader and accumulators; the array's rows and columns come on top."""

MATRIX_HANDOVER = 2
"""From a post instruction's completion until a CONVOLVE that waits for it starts."""

POST_HANDOVER = 1
"""From a CONVOLVE's completion until a post instruction that waits for it starts."""

POST_LATENCY = 27
"""From a post instruction's last step until the next instruction's first one: results land."""

POST_PIPELINE = 25
"""Of these, cycles in which a MAP's last results are under way and their writes stop no reads."""

TABLE_LATENCY = 10
"""Of a TABLE beyond its entries."""

TABLE_WORD_CYCLES = 4
"""At least, a word of a table: one read at a time is under way."""

TABLE_ENTRY_BYTES = 4
"""An entry of the table is written a cycle."""

TABLE_READ_CYCLES = 1
"""More than its entries that a word takes."""


@dataclass(frozen=True)
class CycleModel:
    """Durations that follow from the configuration; all in cycles."""

    configuration: Configuration

    def clock(self) -> "Clock":
        """The state of both engines at the start of a run."""
        return Clock(self)

    @property
    def tile_load(self) -> int:
        """From one tile's start until the next tile's weights are in place."""
        return self.configuration.rows + WEIGHT_OVERHEAD

    @property
    def matrix_latency(self) -> int:
        """From a CONVOLVE's last vector until its sums can be drained, through rows and columns."""
        return self.configuration.rows + self.configuration.columns + MATRIX_LATENCY

    def table_work(self, words: int, period: int, loading: int) -> int:
        """A TABLE's cycles beside an array that loads a tile a ``period`` for ``loading`` cycles.

        The array's reads come first and R in a row: a word gets through in the gap, and then as
        many more as the rest of the period lets.
        """
        rows, columns = self.configuration.rows, self.configuration.columns
        word = max(columns // TABLE_ENTRY_BYTES + TABLE_READ_CYCLES, TABLE_WORD_CYCLES)
        beside = (1 + max(period - rows - 1, 0) / word) / period
        early = min(words, loading * beside)
        return int(early / beside + (words - early) * word) + TABLE_LATENCY

    def post_work(self, fields: Mapping[str, int]) -> int:
        """From a DRAIN's or MAP's start until the next post instruction may start."""
        results = fields["rows"] * fields["columns"] * fields["slices"]
        if fields["opcode"] == Opcode.DRAIN:
            return results + POST_LATENCY
        # reads and writes share a port, but the last results are written when all is read
        accesses = fields["taps_y"] * fields["taps_x"] + 1
        late = min(results, -(-POST_PIPELINE // accesses))
        return results * accesses + POST_LATENCY - late


class Clock:
    """The state of both engines while instructions are issued to them in order.

    A reduction tile streams rows x groups vectors. The weights of the next tile, of the same
    instruction or the next, load from its start on, so a tile lasts at least ``tile_load``. Sums
    land ``matrix_latency`` after the last vector, while the next CONVOLVE may be streaming already.
    """

    def __init__(self, model: CycleModel) -> None:
        self._model = model
        self._loaded = START_CYCLES + model.tile_load - LOADER_HANDOVER
        self._streamed = START_CYCLES
        self._landed = START_CYCLES
        self._post_done = START_CYCLES
        self._fetched = START_CYCLES
        self._period = model.tile_load

    def copy(self) -> "Clock":
        """An independent copy."""
        other = Clock(self._model)
        other._loaded, other._streamed = self._loaded, self._streamed
        other._landed, other._post_done = self._landed, self._post_done
        other._fetched, other._period = self._fetched, self._period
        return other

    @property
    def end(self) -> int:
        """When all that was issued has completed."""
        return max(self._landed, self._post_done)

    def issue(self, fields: Mapping[str, int], ready: int) -> tuple[int, int]:
        """Issues an instruction whose wait is over at ``ready``: its start and its completion."""
        if fields["opcode"] != Opcode.CONVOLVE:
            start = max(self._post_done, ready + POST_HANDOVER)
            if fields["opcode"] == Opcode.TABLE:
                loading = max(self._loaded - start, 0)
                work = self._model.table_work(fields["table_words"], self._period, loading)
            else:
                work = self._model.post_work(fields)
            self._post_done = start + work
            return start, self._post_done
        vectors, load = fields["rows"] * fields["groups"], self._model.tile_load
        self._period = max(vectors, load)
        # taken when the last tile before it started, or else when it has been fetched
        taken = max(self._loaded - load + LOADER_HANDOVER, self._fetched)
        self._fetched = taken + FETCH_CYCLES
        first = max(self._streamed, taken + load, ready + MATRIX_HANDOVER)
        last = first + (fields["reduction_tiles"] - 1) * max(vectors, load)
        self._loaded = last + load
        self._streamed = last + vectors
        self._landed = self._streamed + self._model.matrix_latency
        return first, self._landed

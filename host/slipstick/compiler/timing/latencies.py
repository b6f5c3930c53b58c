"""Lists how many cycles each part of the gateware takes.

The constants are the gateware's (:mod:`slipstick_rtl.latencies`); the rest follows from the
configuration. All are held against the gateware by ``tests/host/compiler/test_cycles.py``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from slipstick_rtl.config import PARAMETER_QUEUE_RESERVE, TABLE_ENTRY_BYTES, Configuration
from slipstick_rtl.isa import MapFlag
from slipstick_rtl.latencies import (
    BLOCK_COLUMNS,
    MATRIX_LATENCY,
    PARAMETER_LATENCY,
    POST_LATENCY,
    QUEUE_TRIP,
    QUEUED_LATENCY,
    TABLE_LATENCY,
    TILE_OVERHEAD,
    result_table_latency,
)

from ..mapping.depthwise_window import sliding_vectors


@dataclass(frozen=True)
class Durations:
    """Durations that follow from the configuration; all in cycles."""

    configuration: Configuration

    def tile_load(self, fields: Mapping[str, int]) -> int:
        """Cycles from one tile's start until the next tile's weights and lanes are in place."""
        configuration = self.configuration
        lanes = configuration.tile_words if fields["whole_words"] else configuration.rows
        return max(self.tile_words(fields), lanes) + TILE_OVERHEAD

    def tile_words(self, fields: Mapping[str, int]) -> int:
        """Reads of the weight memory that a tile's weights take."""
        return self.configuration.tile_words * (8 if fields["from_ninth"] else 1)

    def vectors(self, fields: Mapping[str, int]) -> int:
        """Cycles in which one tile's input comes."""
        if fields["depthwise"]:
            sizes = (fields["rows"], fields["groups"], fields["skip"])
            keeps, joined = bool(fields["kept_rows"]), bool(fields["joined"])
            return sliding_vectors(*sizes, keeps=keeps, joined=joined)
        return fields["rows"] * fields["groups"]

    def tile_period(self, fields: Mapping[str, int], *, pairs: bool = False) -> int:
        """Cycles from one tile's start to the next one's.

        With one pixel even and odd vectors have accumulators of their own, so that a tile starts in
        every other cycle only.
        """
        vectors = self.vectors(fields) // (1 + pairs)
        vectors += vectors % 2 if self.configuration.pixels == 1 else 0
        return max(vectors, self.tile_load(fields))

    @cached_property
    def matrix_latency(self) -> int:
        """Cycles from a CONVOLVE's last vector until its sums can be drained: rows and columns."""
        return self.configuration.rows + self.configuration.columns + MATRIX_LATENCY

    @cached_property
    def post_latency(self) -> int:
        """Cycles from a post instruction's last step until its results have landed."""
        return POST_LATENCY + self.configuration.halved_tables + self.result_table_latency

    @cached_property
    def result_table_latency(self) -> int:
        """Counts, of it, the cycles of the table that results may go through."""
        return result_table_latency(self.configuration)

    @cached_property
    def skew(self) -> int:
        """By which the last of the weight memory's block RAMs is read later than the first."""
        chains, columns = self.configuration.weight_rows, self.configuration.columns
        return (chains - 1) * self.configuration.tile_words + columns - BLOCK_COLUMNS

    @cached_property
    def parameter_load(self) -> int:
        """Cycles from a slice's start until the next one's parameters are in place."""
        words = self.configuration.parameter_block_words
        if self.configuration.ninth_bits:
            return words + QUEUED_LATENCY
        return words + self.skew + PARAMETER_LATENCY

    @cached_property
    def slice_period(self) -> int:
        """At least, from a slice's start to the next one's, if each has its own parameters."""
        if not self.configuration.ninth_bits:
            return self.parameter_load
        words = self.configuration.parameter_block_words
        return max(self.parameter_load, math.ceil(words / self.queued_words))

    @cached_property
    def queued_words(self) -> float:
        """Words of parameters that come a cycle, at best."""
        counted_upon = self.configuration.parameter_queue_words - PARAMETER_QUEUE_RESERVE
        return min(1.0, counted_upon / (self.skew + QUEUE_TRIP))

    @cached_property
    def urgent_words(self) -> float:
        """Likewise, beside an array that loads weights whenever a block of parameters is there, and
        beyond it another one if slices share them."""
        configuration = self.configuration
        blocks = 1 + (configuration.lanes < configuration.columns)
        return min(0.9, blocks * configuration.parameter_block_words / (self.skew + QUEUE_TRIP))

    def table_work(self, words: int) -> int:
        """A TABLE's cycles beside an array that does not load weights."""
        entries = self.configuration.weight_word_bytes // TABLE_ENTRY_BYTES
        return words * entries + TABLE_LATENCY + self.skew

    def table_delay(self, left: int, period: int, loading: int) -> int:
        """Cycles more that a TABLE takes, of which so many are left, beside an array that loads a
        tile a ``period`` for ``loading`` cycles: the array's reads come first."""
        entries = self.configuration.weight_word_bytes // TABLE_ENTRY_BYTES
        free = max(period - self.configuration.tile_words, 0)
        rate = min(1.0, entries * free / period)
        if rate * loading >= left:
            return int(left / rate) - left
        return int(loading - rate * loading)

    def accesses(self, fields: Mapping[str, int]) -> int:
        """Counts accesses to the activation memory, or the tables, per result of a MAP."""
        across = fields["taps_x"]
        if self.configuration.halved_tables:
            # half the tables: a look-up takes two cycles
            # the tap of a product is not looked up
            multiplies = bool(fields.get("table_words", 0) & MapFlag.MULTIPLY)
            taps = range(fields["taps_x"] - multiplies)
            across += sum(fields["use_table"] >> tap % 2 & 1 for tap in taps)
        # reads and writes share a port
        return fields["taps_y"] * across + 1

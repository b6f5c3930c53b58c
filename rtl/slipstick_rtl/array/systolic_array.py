"""The array: R x C processing elements, weight-stationary, P pixels sharing each weight."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..latencies import BLOCK_COLUMNS
from ..numbers import packing
from ..numbers.number_format import number_format
from ..primitives.delay import delay
from ..primitives.delay_memory import LONGEST_RING, DelayRing, long_delay
from ..primitives.fanout import copy_of
from ..primitives.resting import resting, works_for
from .depthwise_feed import DepthwiseFeed, feed_cycles, kernel_place, tap_rows
from .packed_pair import HOP_CYCLES, PackedPair, Unpacker
from .processing_element import ProcessingElement, element_latency
from .row_pair import PairRow, RowPair
from .segments import Segment, array_latency, row_delay, segments
from .skew import Skewed, skew

CAPTURE_CYCLES = 3
"""Cycles from a tile's last word until its row's first swap that may use it."""


class SystolicArray(wiring.Component):
    """Sums of R products for C output channels and P pixels, one vector a cycle.

    The rows are W chains of R / W. A tile of weights arrives as R / W words, one row of each chain
    at a time, the chains' highest rows first. All rows of a chain are given each word, and the one
    whose word it is captures it when the next word comes; the last one the cycle after.

    ``swap`` comes one cycle before the first activations that use a tile, and goes down a row a
    cycle: so it may come ``CAPTURE_CYCLES`` - R / W + 1 cycles after the last word at the earliest.
    Of the next tile the first word may come as soon as it likes, word q >= 1 not before
    q + 1 - ``CAPTURE_CYCLES`` cycles after ``swap``. So a new tile can be taken every R / W cycles
    while the array works, whatever number of vectors it is used for.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    activations : In
        [P][R] operands, all rows of one reduction tile in the same cycle.
    swap : In
    pairs : In
        With ``swap``: rows R / 2 and up work on a vector of their own, in the next tile.
    depthwise, half, block, kept_rows : In
        With activations: they are a depthwise CONVOLVE's, and what the depthwise feed has to know.
        Used only if the configuration ``takes_depthwise``.
    weights : In
        [W][C] operands; those of chain s, column j ``weight_skew`` cycles after the word's first.
    shift, last : In
        There is a word; it is the tile's last. With the word's first weights.
    partial_sums : Out
        [P][C] sums; column j is ``latency + j`` cycles later than its activations.
    even_sums : Out
        [P][C], at the same time, those of the upper R / 2 rows; only if the configuration
        ``takes_pairs``.
    """

    activations: data.View
    swap: Signal
    pairs: Signal
    depthwise: Signal
    half: Signal
    block: Signal
    kept_rows: Signal
    weights: data.View
    shift: Signal
    last: Signal
    partial_sums: data.View
    even_sums: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._format = number_format(c)
        operand, total = self._format.operand, self._format.partial_sum(c.rows)
        word = data.ArrayLayout(data.ArrayLayout(operand, c.columns), c.weight_rows)
        sums = data.ArrayLayout(data.ArrayLayout(total, c.columns), c.pixels)
        super().__init__(
            {
                "activations": In(data.ArrayLayout(data.ArrayLayout(operand, c.rows), c.pixels)),
                "swap": In(1),
                "pairs": In(1),
                "depthwise": In(1),
                "half": In(1),
                "block": In(2),
                "kept_rows": In(1),
                "weights": In(word),
                "shift": In(1),
                "last": In(1),
                "partial_sums": Out(sums),
                "even_sums": Out(sums),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from the activations to column 0's sums."""
        return array_latency(self._configuration)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        pairs = [
            [PackedPair(pixels=c.pixels, rows_above=i) for _ in range(c.columns // 2)]
            for i in range(c.packed_rows)
        ]
        stages = self._stages()
        rows = [*pairs, *self._rows(stages)]
        wanted = [{row_delay(c, i)} | feed_cycles(c, i) for i in range(c.rows)]
        skewed = [
            skew(
                m, [self._format.encode(byte) for byte in self.activations[p]], wanted, f"skew_{p}"
            )
            for p in range(c.pixels)
        ]
        self._activate(m, rows, skewed)
        if c.takes_depthwise:
            self._feed_taps(m, platform, rows, skewed[0])
        count = self._count_words(m)
        # the way of weights' bytes and enables; in silicon it rests while no tile comes
        bytes_way = Module() if c.silicon else m
        for segment in segments(c, self._format):
            mine = rows[segment.first : segment.end]
            self._spread_weights(m, bytes_way, platform, segment, mine, count)
        if c.silicon:
            works = works_for(m, self.shift, c.columns + c.rows, "bytes_work")
            m.submodules.bytes = resting(bytes_way, works)
        sums = self._sum_pairs(m, pairs)
        for i, stage in zip(self._first_rows(), stages, strict=True):
            if c.takes_pairs and i == c.rows // 2:
                sums = self._part(m, sums, stage)
            for j, element in enumerate(stage):
                if sums:
                    m.d.comb += [element.partial_sums[p].eq(sums[p][j]) for p in range(c.pixels)]
            sums = [[element.partial_sums_out[p] for element in stage] for p in range(c.pixels)]
        for p in range(c.pixels):
            m.d.comb += [self.partial_sums[p][j].eq(sums[p][j]) for j in range(c.columns)]
        return m

    def _first_rows(self) -> list[int]:
        """The rows, or first of two rows, whose elements are stages of their columns' sums."""
        c = self._configuration
        return [
            row
            for row in range(c.packed_rows, c.rows)
            if row // c.tile_words % c.rows_together == 0
        ]

    def _stages(self) -> list[list[ProcessingElement]] | list[list[RowPair]]:
        """Creates what follows the packed rows: stages with a register of sums per column."""
        c = self._configuration
        kind = ProcessingElement if c.rows_together == 1 else RowPair
        stages = []
        for place in range(len(self._first_rows())):
            above = c.packed_rows + place * c.rows_together
            stage = [
                kind(number_format=self._format, pixels=c.pixels, rows_above=above)
                for _ in range(c.columns)
            ]
            stages.append(stage)
        return stages

    def _rows(self, stages: list[list[Any]]) -> list[list[Any]]:
        """The rows of the stages, in their order: rows of a pair are those of two chains."""
        c = self._configuration
        if c.rows_together == 1:
            return stages
        rows: dict[int, list[Any]] = {}
        for first, stage in zip(self._first_rows(), stages, strict=True):
            for index in range(c.rows_together):
                rows[first + index * c.tile_words] = [pair.row(index) for pair in stage]
        return [rows[row] for row in sorted(rows)]

    def _count_words(self, m: Module) -> Signal:
        """Counts a tile's words: returns the index of the one that comes."""
        count = Signal(range(self._configuration.tile_words))
        with m.If(self.shift):
            m.d.sync += count.eq(Mux(self.last, 0, count + 1))
        return count

    def _part(self, m: Module, sums: list[list[Any]], row: list[Any]) -> list[list[Any]]:
        """The upper half's sums go on into the row below, or beside the lower half's to the end."""
        c = self._configuration
        half = c.rows // 2
        latency = element_latency(self._format)
        works = self._pairs_work(m) if c.silicon else None
        flag = delay(m, self.pairs, row_delay(c, half), "pairs_way", reset_less=True)
        parted: list[Any] = []
        for j, element in enumerate(row):
            upper = sums[0][j]
            apart = Signal(name=f"apart_{j}", reset_less=True)
            with m.If(element.swap):
                m.d.sync += apart.eq(flag)
            flag = delay(m, flag, 1, f"pairs_{j}", reset_less=True)
            # the products of the activations that follow the swap come as late
            late = delay(m, apart, latency - 1, f"apart_late_{j}", reset_less=True)
            passed = Signal.like(upper, name=f"passed_{j}")
            m.d.comb += [
                self.even_sums[0][j].eq(self._wait_beside(m, upper, j, works)),
                passed.eq(Mux(late, 0, upper)),
            ]
            parted.append(passed)
        return [parted]

    def _wait_beside(self, m: Module, upper: Signal, column: int, works: Value | None) -> Signal:
        """The upper half's sum as it was as many cycles ago as it takes to pass the lower half."""
        c = self._configuration
        cycles = row_delay(c, c.rows - 1) - row_delay(c, c.rows // 2 - 1)
        count = -(-cycles // LONGEST_RING)
        for n in range(count):
            # of nearly equal lengths, as a ring has at least two places
            ring = DelayRing(shape=upper.shape(), cycles=(cycles + n) // count)
            m.submodules[f"upper_{column}" + (f"_{n}" if n else "")] = resting(ring, works)
            m.d.comb += ring.i.eq(upper)
            upper = ring.o
        return upper

    def _pairs_work(self, m: Module) -> Value:
        """Is set from a swap with ``pairs`` on until all sums of its vectors have gone."""
        c, last = self._configuration, Signal()
        with m.If(self.swap):
            m.d.sync += last.eq(self.pairs)
        cycles = self.latency + c.columns + c.rows
        return works_for(m, (self.swap & self.pairs) | last, cycles, "pairs_work")

    def _feed_taps(
        self, m: Module, platform: object, rows: list[list[Any]], skewed: Skewed
    ) -> None:
        """The rows of depthwise taps: operands from the left, or from the element below."""
        c = self._configuration
        m.submodules.feed = feed = DepthwiseFeed(configuration=c)
        m.d.comb += [
            feed.half.eq(self.half),
            feed.block.eq(self.block),
            feed.kept_rows.eq(self.kept_rows),
        ]
        for j in range(c.columns):
            lower, upper = skewed[j], skewed[c.columns + j]
            first, second = sorted(feed_cycles(c, c.columns + j))
            m.d.comb += [
                Value.cast(feed.lower[j]).eq(lower[j]),
                Value.cast(feed.upper[j]).eq(upper[first]),
                Value.cast(feed.upper_late[j]).eq(upper[second]),
            ]
        first = tap_rows(c)[0]
        flag = delay(m, self.depthwise, row_delay(c, first), "depthwise_way", reset_less=True)
        for i in tap_rows(c):
            left = skewed[i][row_delay(c, i)]
            ky, is_last = kernel_place(i - first)
            vertical = flag
            for j, element in enumerate(rows[i]):
                below = feed.operands[ky][j] if is_last else rows[i + 1][j].activations_out[0]
                m.d.comb += Value.cast(element.activations).eq(Mux(vertical, below, left))
                left = element.activations_out[0]
                vertical = copy_of(m, platform, vertical, f"depthwise_{i}_{j}")
            flag = delay(m, flag, 1, f"depthwise_{i}", reset_less=True)

    def _activate(self, m: Module, rows: list[list[Any]], skewed: list[Skewed]) -> None:
        """The swap through every row, from left to right, and activations but those of taps."""
        c = self._configuration
        taps = tap_rows(c)
        swap, swapped = self.swap, 0
        begun = {*range(c.packed_rows), *self._first_rows()}
        for i, row in enumerate(rows):
            packed = i < c.packed_rows
            if i in begun:
                swap = delay(m, swap, row_delay(c, i) - swapped, f"swap_{i}", reset_less=True)
                swapped = row_delay(c, i)
                m.d.comb += row[0].swap.eq(swap)
            for p in range(0 if i in taps else c.pixels):
                value = skewed[p][i][row_delay(c, i)].as_signed()
                if packed:
                    m.d.comb += [
                        row[0].activations[p].value.eq(value),
                        row[0].activations[p].edge.eq(packing.edge(value)),
                    ]
                else:
                    m.d.comb += row[0].activations[p].eq(value)
            for place, element in enumerate(row):
                if i in begun:
                    name = f"{'pair' if packed else 'element'}_{i}_{place}"
                    m.submodules[name] = element.pair if isinstance(element, PairRow) else element
                if place:
                    left = row[place - 1]
                    if i in begun:
                        m.d.comb += element.swap.eq(left.swap_out)
                    if i not in taps:
                        m.d.comb += element.activations.eq(left.activations_out)

    def _sum_pairs(self, m: Module, pairs: list[list[PackedPair]]) -> list[list[Any]]:
        """Partial sums down the packed rows, and out of them: [P][C], or nothing."""
        c = self._configuration
        for above, row in zip(pairs, pairs[1:], strict=False):
            for upper, lower in zip(above, row, strict=True):
                m.d.comb += lower.partial_sums.eq(upper.partial_sums_out)
        sums: list[list[Any]] = [[] for _ in range(c.pixels if pairs else 0)]
        for g, pair in enumerate(pairs[-1] if pairs else ()):
            for p in range(c.pixels):
                unpacker = Unpacker(number_format=self._format, rows=len(pairs))
                m.submodules[f"unpacker_{g}_{p}"] = unpacker
                m.d.comb += unpacker.i.eq(pair.partial_sums_out[p])
                sums[p] += [unpacker.o[0], unpacker.o[1]]
        return sums

    def _spread_weights(
        self,
        m: Module,
        bytes_way: Module,
        platform: object,
        segment: Segment,
        rows: list[list[Any]],
        count: Signal,
    ) -> None:
        """The weights of a segment's rows, and their enables from left to right."""
        ways = self._first_enables(m, segment, count)
        hop = HOP_CYCLES if segment.packed else 1
        for place in range(len(rows[0])):
            ways = {
                name: copy_of(
                    bytes_way,
                    platform,
                    delay(
                        bytes_way, way, hop - 1 if place else 0, f"{name}_{place}", reset_less=True
                    ),
                    f"{name}_{place}_copy",
                )
                for name, way in ways.items()
            }
            shift, *captures = ways.values()
            stored = self._stored(bytes_way, segment, place)
            # one for all rows: it stays until the next word comes, and that captures it
            weight = Signal(len(stored), name=f"weight_{segment.first}_{place}", reset_less=True)
            with m.If(shift):
                m.d.sync += weight.eq(stored)
            for row, capture in zip(rows, captures, strict=True):
                m.d.comb += [row[place].weight.eq(weight), row[place].capture.eq(capture)]

    def _first_enables(self, m: Module, segment: Segment, count: Signal) -> dict[str, Value]:
        """A segment's ``shift`` and its rows' ``capture``, a cycle before the first column's."""
        late, first = segment.late, segment.first
        shift = delay(m, self.shift, late, f"shift_{first}", reset_less=True)
        word = delay(m, count, late, f"word_{first}", reset_less=True)
        last = delay(m, self.shift & self.last, late + 1, f"last_{first}", reset_less=True)
        enables: dict[str, Value] = {f"shift_way_{first}": shift}
        for row in range(first, segment.end):
            following = row % self._configuration.tile_words + 1
            ends = following == self._configuration.tile_words
            enables[f"capture_{row}"] = last if ends else shift & (word == following)
        return enables

    def _stored(self, m: Module, segment: Segment, place: int) -> Value:
        """The words of a segment's column, or pair of columns, as its elements hold them."""
        width = 2 if segment.packed else 1
        first = width * place
        weights: list[Value] = []
        for j in range(first, first + width):
            # the memory gives blocks of columns at once; the enables have a register more
            late = 1 + segment.late_in_chain + first % BLOCK_COLUMNS
            weight = Value.cast(self.weights[segment.chain][j])
            weights.append(long_delay(m, weight, late, f"byte_{segment.first}_{j}"))
        return packing.store(*weights) if segment.packed else self._format.store(weights[0])

"""The accumulators: two banks, one filled by the array while the other is emptied."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..memory.latencies import ACCUMULATOR_READ_LATENCY, ACCUMULATOR_UPDATE_LATENCY
from ..numbers.int8 import number_format
from ..primitives.delay import delay

ACCUMULATOR_BITS = 32


def accumulate_layout(depth: int) -> data.StructLayout:
    """What the matrix engine says of a vector of sums: ``address`` counts vectors from 0 on.

    ``first`` overwrites. With ``pair`` there are two vectors, the even and the odd one of pair
    ``address``, and they overwrite.
    """
    return data.StructLayout(
        {"valid": 1, "first": 1, "pair": 1, "bank": 1, "address": exact_log2(depth)}
    )


def read_layout(depth: int) -> data.StructLayout:
    """What the post engine asks of the accumulators."""
    return data.StructLayout({"enable": 1, "bank": 1, "address": exact_log2(depth)})


class AccumulatorColumn(wiring.Component):
    """Both banks of one column: adds P sums a cycle to the words that the control names.

    Even and odd vectors lie in two memories, each with half of either bank. So two vectors can be
    written in one cycle, and the array, which goes from vector to vector, leaves each memory free
    for a read in every other cycle.

    Parameters
    ----------
    pixels, depth : int
        P, words a bank.
    sums : data.ArrayLayout
        The column's partial sums.

    Members
    -------
    control : In
        Of the sums that come ACCUMULATOR_UPDATE_LATENCY cycles later. One address must not return
        within four cycles.
    partial_sums, even_sums : In
        Of the vector; with ``pair`` of the odd one, and of the even one.
    read : In
        Honoured in cycles in which ``control`` names a vector of the other kind, even or odd, or
        overwrites, or is not valid.
    read_data : Out
        ACCUMULATOR_UPDATE_LATENCY cycles later.
    """

    control: data.View
    partial_sums: data.View
    even_sums: data.View
    read: data.View
    read_data: data.View

    def __init__(self, *, pixels: int, depth: int, sums: data.ArrayLayout) -> None:
        self._depth = depth
        self._words = data.ArrayLayout(ACCUMULATOR_BITS, pixels)
        super().__init__(
            {
                "control": In(accumulate_layout(depth)),
                "partial_sums": In(sums),
                "even_sums": In(sums),
                "read": In(read_layout(depth)),
                "read_data": Out(self._words),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self._words
        control = delay(m, self.control, ACCUMULATOR_UPDATE_LATENCY, "control")
        landing = delay(m, control, 1, "landing")
        total, even = Signal(words, reset_less=True), Signal(words, reset_less=True)
        written = (Mux(landing.pair, Value.cast(even), Value.cast(total)), Value.cast(total))
        held = [self._memory(m, odd, landing, written[odd]) for odd in range(2)]

        def chosen(odd: Value, name: str) -> data.View:
            word = Signal(words, name=name)
            m.d.comb += Value.cast(word).eq(Mux(odd, held[1], held[0]))
            return word

        stored = chosen(control.address[0], "stored")
        odd_read = delay(m, self.read.address[0], ACCUMULATOR_UPDATE_LATENCY, "odd_read")
        m.d.comb += self.read_data.eq(chosen(odd_read, "found"))
        for pixel in range(words.length):
            base = Mux(control.first, 0, stored[pixel])
            m.d.sync += [
                total[pixel].eq(base + self.partial_sums[pixel]),
                even[pixel].eq(self.even_sums[pixel]),
            ]
        return m

    def _memory(self, m: Module, odd: int, landing: data.View, written: Value) -> Value:
        """The even or the odd vectors; what is read comes ACCUMULATOR_UPDATE_LATENCY later."""
        name = ("even", "odd")[odd]
        m.submodules[name] = memory = Memory(shape=self._words.size, depth=self._depth, init=[])
        reader, writer = memory.read_port(), memory.write_port()
        updated = self.control
        # what overwrites needs no read
        mine = updated.valid & ~updated.first & (updated.address[0] == odd)
        pair = Cat(landing.address[:-1], landing.bank)
        single = Cat(landing.address[1:], landing.bank)
        held = Signal(self._words.size, name=f"held_{name}", reset_less=True)
        m.d.comb += [
            reader.addr.eq(
                Mux(
                    mine,
                    Cat(updated.address[1:], updated.bank),
                    Cat(self.read.address[1:], self.read.bank),
                )
            ),
            reader.en.eq(1),
            writer.addr.eq(Mux(landing.pair, pair, single)),
            writer.data.eq(written),
            writer.en.eq(landing.valid & (landing.pair | (landing.address[0] == odd))),
        ]
        m.d.sync += held.eq(reader.data)
        return held


def accumulators_latency(configuration: Configuration) -> int:
    """Cycles from column 0's control until the last column's sums can be read."""
    return ACCUMULATOR_UPDATE_LATENCY + 2 + configuration.columns - 1


class Accumulators(wiring.Component):
    """C columns of accumulators, skewed as the array's sums are.

    A column's array works a cycle behind its neighbour's, so of two neighbours one has its even
    vectors' memory free while the other has its odd one's: odd columns are read a cycle later.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    control : In
        Of column 0, ACCUMULATOR_UPDATE_LATENCY cycles before its sums; column j is j cycles later.
    partial_sums, even_sums : In
        [P][C].
    read : In
        In a cycle in which column 0's ``control``, unless it overwrites, does not name a vector of
        the same kind, even or odd.
    read_data : Out
        P * C words of 32 bits, pixel-major, ACCUMULATOR_READ_LATENCY cycles after ``read``.
    """

    control: data.View
    partial_sums: data.View
    even_sums: data.View
    read: data.View
    read_data: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        total = number_format(c.number_format).partial_sum(c.rows)
        self._column_sums = data.ArrayLayout(total, c.pixels)
        grid = data.ArrayLayout(data.ArrayLayout(total, c.columns), c.pixels)
        super().__init__(
            {
                "control": In(accumulate_layout(c.accumulator_depth)),
                "partial_sums": In(grid),
                "even_sums": In(grid),
                "read": In(read_layout(c.accumulator_depth)),
                "read_data": Out(c.pixels * c.columns * ACCUMULATOR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        control = self.control
        reads = (self.read, delay(m, self.read, 1, "odd_read"))
        for j in range(c.columns):
            m.submodules[f"column_{j}"] = column = AccumulatorColumn(
                pixels=c.pixels, depth=c.accumulator_depth, sums=self._column_sums
            )
            m.d.comb += [column.control.eq(control), column.read.eq(reads[j % 2])]
            late = ACCUMULATOR_READ_LATENCY - ACCUMULATOR_UPDATE_LATENCY - j % 2
            for p in range(c.pixels):
                word = self.read_data.word_select(p * c.columns + j, ACCUMULATOR_BITS)
                found = delay(m, column.read_data[p], late, f"found_{j}_{p}", reset_less=True)
                m.d.comb += [
                    column.partial_sums[p].eq(self.partial_sums[p][j]),
                    column.even_sums[p].eq(self.even_sums[p][j]),
                    word.eq(found),
                ]
            control = delay(m, control, 1, f"control_{j}")
        return m

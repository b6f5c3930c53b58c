"""The accumulators: two banks, one filled by the array while the other is emptied."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..memory.latencies import ACCUMULATOR_READ_LATENCY
from ..numbers.int8 import number_format
from ..primitives.delay import delay

ACCUMULATOR_BITS = 32


class AccumulatorColumn(wiring.Component):
    """Both banks of one column: adds P sums a cycle to the words that the control names.

    Parameters
    ----------
    pixels, depth : int
        P, words a bank.
    sums : data.ArrayLayout
        The column's partial sums.

    Members
    -------
    control : In
        ``valid, first, bank, address`` of the sums that come ACCUMULATOR_READ_LATENCY cycles later;
        ``first`` overwrites. One address must not return within four cycles.
    partial_sums : In
    read : In
        ``enable, bank, address``, honoured in cycles in which the array does not use that bank.
    read_data : Out
        ACCUMULATOR_READ_LATENCY cycles later.
    """

    control: data.View
    partial_sums: data.View
    read: data.View
    read_data: data.View

    def __init__(self, *, pixels: int, depth: int, sums: data.ArrayLayout) -> None:
        self._depth = depth
        self._words = data.ArrayLayout(ACCUMULATOR_BITS, pixels)
        super().__init__(
            {
                "control": In(accumulate_layout(depth)),
                "partial_sums": In(sums),
                "read": In(read_layout(depth)),
                "read_data": Out(self._words),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self._words
        control = delay(m, self.control, ACCUMULATOR_READ_LATENCY, "control")
        landing = delay(m, control, 1, "landing")
        read_bank = delay(m, self.read.bank, ACCUMULATOR_READ_LATENCY, "read_bank")
        totals = Signal(words, reset_less=True)
        stored = Signal(words)
        banks = []
        for bank in range(2):
            m.submodules[f"bank_{bank}"] = memory = Memory(
                shape=words.size, depth=self._depth, init=[]
            )
            reader, writer = memory.read_port(), memory.write_port()
            mine = self.control.valid & (self.control.bank == bank)
            held = Signal(words, name=f"held_{bank}", reset_less=True)
            m.d.comb += [
                reader.addr.eq(Mux(mine, self.control.address, self.read.address)),
                reader.en.eq(1),
                writer.addr.eq(landing.address),
                writer.data.eq(totals),
                writer.en.eq(landing.valid & (landing.bank == bank)),
            ]
            m.d.sync += Value.cast(held).eq(reader.data)
            banks.append(Value.cast(held))
        m.d.comb += [
            Value.cast(stored).eq(Mux(control.bank, banks[1], banks[0])),
            Value.cast(self.read_data).eq(Mux(read_bank, banks[1], banks[0])),
        ]
        for pixel in range(words.length):
            base = Mux(control.first, 0, stored[pixel])
            m.d.sync += totals[pixel].eq(base + self.partial_sums[pixel])
        return m


def accumulate_layout(depth: int) -> data.StructLayout:
    """What the matrix engine says of a vector of sums."""
    return data.StructLayout({"valid": 1, "first": 1, "bank": 1, "address": ceil_log2(depth)})


def read_layout(depth: int) -> data.StructLayout:
    """What the post engine asks of the accumulators."""
    return data.StructLayout({"enable": 1, "bank": 1, "address": ceil_log2(depth)})


def accumulators_latency(configuration: Configuration) -> int:
    """Cycles from column 0's control until the last column's sums can be read."""
    return ACCUMULATOR_READ_LATENCY + 2 + configuration.columns - 1


class Accumulators(wiring.Component):
    """C columns of accumulators, skewed as the array's sums are.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    control : In
        Of column 0, ACCUMULATOR_READ_LATENCY cycles before its sums; column j is j cycles later.
    partial_sums : In
        [P][C].
    read : In
    read_data : Out
        P * C words of 32 bits, pixel-major, ACCUMULATOR_READ_LATENCY cycles after ``read``.
    """

    control: data.View
    partial_sums: data.View
    read: data.View
    read_data: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        total = number_format(c.number_format).partial_sum(c.rows)
        self._column_sums = data.ArrayLayout(total, c.pixels)
        super().__init__(
            {
                "control": In(accumulate_layout(c.accumulator_depth)),
                "partial_sums": In(data.ArrayLayout(data.ArrayLayout(total, c.columns), c.pixels)),
                "read": In(read_layout(c.accumulator_depth)),
                "read_data": Out(c.pixels * c.columns * ACCUMULATOR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        control = self.control
        for j in range(c.columns):
            m.submodules[f"column_{j}"] = column = AccumulatorColumn(
                pixels=c.pixels, depth=c.accumulator_depth, sums=self._column_sums
            )
            m.d.comb += [column.control.eq(control), column.read.eq(self.read)]
            for p in range(c.pixels):
                word = self.read_data.word_select(p * c.columns + j, ACCUMULATOR_BITS)
                m.d.comb += [
                    column.partial_sums[p].eq(self.partial_sums[p][j]),
                    word.eq(column.read_data[p]),
                ]
            control = delay(m, control, 1, f"control_{j}")
        return m

"""The compact engine's accumulators: one bank, C columns, one read a cycle."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..array.accumulators import ACCUMULATOR_BITS
from ..config import Configuration
from ..primitives.delay import delay
from ..primitives.load_adder import LoadAdder


class CompactAccumulators(wiring.Component):
    """Adds a vector of C sums a cycle to the words of an address, or reads the words.

    Parameters
    ----------
    configuration : Configuration
    sums : data.ArrayLayout
        Of the multipliers.

    Members
    -------
    address : In
        Of the words read in this cycle.
    add, first : In
        ``sums`` in the next cycle are added to these words, or with ``first`` overwrite them.
    sums : In
    column : In
        Which of the columns' words ``word`` shows.
    word : Out(signed(32))
        Of the address in the cycle before; ``column`` is of this one.
    """

    address: Signal
    add: Signal
    first: Signal
    sums: data.View
    column: Signal
    word: Signal

    def __init__(self, *, configuration: Configuration, sums: data.ArrayLayout) -> None:
        self._depth = configuration.accumulator_depth
        super().__init__(
            {
                "address": In(ceil_log2(self._depth)),
                "add": In(1),
                "first": In(1),
                "sums": In(sums),
                "column": In(ceil_log2(configuration.columns)),
                "word": Out(signed(ACCUMULATOR_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        address = delay(m, self.address, 1, "address", reset_less=True)
        add = delay(m, self.add, 1, "add")
        first = delay(m, self.first, 1, "first", reset_less=True)
        words = Signal(data.ArrayLayout(ACCUMULATOR_BITS, len(self.sums)))
        for j in range(len(self.sums)):
            total = self.sums[j]
            memory = Memory(shape=signed(ACCUMULATOR_BITS), depth=self._depth, init=[])
            m.submodules[f"column_{j}"] = memory
            m.submodules[f"adder_{j}"] = adder = LoadAdder(width=ACCUMULATOR_BITS)
            reader, writer = memory.read_port(), memory.write_port()
            m.d.comb += [
                reader.addr.eq(self.address),
                reader.en.eq(1),
                adder.a.eq(reader.data),
                adder.b.eq(total),
                adder.load.eq(first),
                writer.addr.eq(address),
                writer.data.eq(adder.o),
                writer.en.eq(add),
                words[j].eq(reader.data),
            ]
        m.d.comb += self.word.eq(words[self.column])
        return m

"""What is synthesised to learn what a number format costs: a column of elements, or an array."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.array.packed_pair import PackedPair, Unpacker
from slipstick_rtl.array.processing_element import ProcessingElement
from slipstick_rtl.array.systolic_array import SystolicArray
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.number_format import number_format

Element = ProcessingElement | PackedPair

CONTROLS = ("swap", "pairs", "depthwise", "half", "block", "kept_rows", "shift", "last")


def element_column(configuration: Configuration) -> tuple[Module, list[Signal], int]:
    """The elements of one column, or pair of columns, from the first row to the last.

    Sums go from each to the next; all else that an element takes and gives is a port.

    Returns
    -------
    (module, ports, elements)
        And how many elements they are.
    """
    c = configuration
    m, ports = Module(), list[Signal]()
    element_format, packed = number_format(c), bool(c.packed_rows)
    column: list[Element] = [
        PackedPair(pixels=c.pixels, rows_above=row)
        if packed
        else ProcessingElement(number_format=element_format, pixels=c.pixels, rows_above=row)
        for row in range(c.rows)
    ]

    def port(value: Value, name: str) -> Signal:
        ports.append(Signal(len(value), name=name))
        return ports[-1]

    for row, element in enumerate(column):
        m.submodules[f"element_{row}"] = element
        for name in ("activations", "swap", "weight", "capture"):
            value = Value.cast(getattr(element, name))
            m.d.comb += value.eq(port(value, f"{name}_{row}"))
        for name in ("activations_out", "swap_out"):
            value = Value.cast(getattr(element, name))
            m.d.comb += port(value, f"{name}_{row}").eq(value)
        if row:
            sums = Value.cast(column[row - 1].partial_sums_out)
            m.d.comb += Value.cast(element.partial_sums).eq(sums)
    sums = Value.cast(column[-1].partial_sums_out)
    if packed:
        m.submodules.unpacker = unpacker = Unpacker(number_format=element_format, rows=c.rows)
        m.d.comb += Value.cast(unpacker.i).eq(sums)
        sums = Value.cast(unpacker.o)
    m.d.comb += port(sums, "sums").eq(sums)
    return m, ports, c.rows * (1 + packed)


class ArrayRig(wiring.Component):
    """Operands and controls come in bit by bit; of each column's sums the parity goes out.

    Every input of the array is a register, and every output goes to one; the parities take a tree
    of registered gates, so that the array alone decides the clock.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    clk, i : In
    o : Out
        A bit a column.
    """

    clk: Signal
    i: Signal
    o: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self.array = SystolicArray(configuration=configuration)
        super().__init__({"clk": In(1), "i": In(1), "o": Out(configuration.columns)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.d.comb += ClockSignal().eq(self.clk)
        m.submodules.array = array = self.array
        inputs = [Value.cast(getattr(array, name)) for name in CONTROLS]
        inputs += [Value.cast(array.activations), Value.cast(array.weights)]
        chain = Signal(sum(map(len, inputs)))
        m.d.sync += chain.eq(Cat(self.i, chain))
        m.d.comb += Cat(*inputs).eq(chain)
        c = self._configuration
        for j in range(c.columns):
            sums: list[Any] = [array.partial_sums[p][j] for p in range(c.pixels)]
            if c.takes_pairs:
                sums.append(array.even_sums[0][j])
            word = Signal(sum(map(len, sums)), name=f"word_{j}")
            m.d.sync += word.eq(Cat(*map(Value.cast, sums)))
            m.d.comb += self.o[j].eq(_parity(m, word, f"parity_{j}"))
        return m


def _parity(m: Module, word: Value, name: str) -> Value:
    """Of four bits at a time, a register each."""
    while len(word) > 1:
        pieces = [word[k : k + 4].xor() for k in range(0, len(word), 4)]
        register = Signal(len(pieces), name=f"{name}_{len(pieces)}")
        m.d.sync += register.eq(Cat(pieces))
        word = register
    return word

"""A long delay in a memory: for words whose registers would cost more."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class DelayRing(wiring.Component):
    """``i`` as it was ``cycles`` ago; look-up tables' memory where the chip has it; no reset.

    Parameters
    ----------
    shape : ShapeLike
    cycles : int
        At least 2.

    Raises
    ------
    ValueError
        If there are fewer cycles.
    """

    i: Signal
    o: Signal

    def __init__(self, *, shape: ShapeLike, cycles: int) -> None:
        if cycles < 2:
            raise ValueError(f"cycles must be at least 2, not {cycles}")
        self._cycles = cycles
        super().__init__({"i": In(shape), "o": Out(shape)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # one of the cycles is the register before it
        depth = self._cycles - 1
        m.submodules.memory = memory = Memory(shape=len(self.i), depth=depth, init=[])
        reader, writer = memory.read_port(domain="comb"), memory.write_port()
        place = Signal(max(ceil_log2(depth), 1))
        given = Signal(len(self.i), reset_less=True)
        m.d.sync += [
            place.eq(Mux(place == depth - 1, 0, place + 1)),
            given.eq(self.i),
        ]
        m.d.comb += [
            reader.addr.eq(place),
            writer.addr.eq(place),
            writer.data.eq(given),
            writer.en.eq(1),
            Value.cast(self.o).eq(reader.data),
        ]
        return m

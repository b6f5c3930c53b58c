"""The one memory of the compact engine: words of C bytes behind a single port."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class Store(wiring.Component):
    """Reads a word or writes bytes of one, an access a cycle.

    On UP5K it becomes SPRAM, which has no initial contents; nothing reads what was not written.

    Parameters
    ----------
    words, word_bytes : int

    Members
    -------
    address : In
    enables : In(word_bytes)
        Bytes to be written; none: the word is read.
    byte : In(8)
        What is written, to each of them.
    data : Out(8 x word_bytes)
        The word read in the cycle before.
    """

    address: Signal
    enables: Signal
    byte: Signal
    data: Signal

    def __init__(self, *, words: int, word_bytes: int) -> None:
        self._words, self._word_bytes = words, word_bytes
        super().__init__(
            {
                "address": In(ceil_log2(words)),
                "enables": In(word_bytes),
                "byte": In(8),
                "data": Out(8 * word_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=8 * self._word_bytes, depth=self._words, init=[]
        )
        writer, reader = memory.write_port(granularity=8), memory.read_port()
        # one address, and never both at once: synthesis makes one port of them
        m.d.comb += [
            writer.addr.eq(self.address),
            writer.data.eq(Value.cast(self.byte).replicate(self._word_bytes)),
            writer.en.eq(self.enables),
            reader.addr.eq(self.address),
            reader.en.eq(~self.enables.any()),
            self.data.eq(reader.data),
        ]
        return m

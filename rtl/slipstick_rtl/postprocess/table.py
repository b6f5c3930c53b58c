"""Tables of 512 entries: two functions of a byte; the copy in each lane, and the loader of all."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import POST_FIELDS
from ..memory.latencies import WEIGHT_READ_LATENCY
from ..primitives.delay import delay

TABLE_ENTRIES = 512
ENTRY_BITS = 32

TABLE_WRITE = data.StructLayout({"enable": 1, "address": range(TABLE_ENTRIES), "data": ENTRY_BITS})
"""An entry for the tables of all lanes."""


class Table(wiring.Component):
    """One lane's copy of the table.

    Members
    -------
    write : In(TABLE_WRITE)
    byte : In(signed(8))
    odd : In(1)
        Looks in the second half.
    entry : Out(signed(32))
        ``latency`` cycles later.
    """

    write: data.View
    byte: Signal
    odd: Signal
    entry: Signal

    latency = 2
    """Cycles: block RAM and its output register."""

    def __init__(self) -> None:
        super().__init__(
            {
                "write": In(TABLE_WRITE),
                "byte": In(signed(8)),
                "odd": In(1),
                "entry": Out(signed(ENTRY_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=signed(ENTRY_BITS), depth=TABLE_ENTRIES, init=[]
        )
        writer, reader = memory.write_port(), memory.read_port()
        m.d.comb += [
            writer.en.eq(self.write.enable),
            writer.addr.eq(self.write.address),
            writer.data.eq(self.write.data),
            # not in a cycle with a write: synthesis need not build what would happen then
            reader.en.eq(~self.write.enable),
            # byte + 128
            reader.addr.eq(Cat(self.byte[:-1], ~self.byte[-1], self.odd)),
        ]
        m.d.comb += self.entry.eq(delay(m, reader.data, 1, "entry", reset_less=True))
        return m


class TableLoader(wiring.Component):
    """Copies words of C bytes from weight memory into the tables, an entry a cycle.

    One read is under way at a time, sent as soon as its data cannot meet entries still unwritten.

    Members
    -------
    load : In(1)
        Starts; ``done`` falls in the next cycle.
    first : In(24)
        Word address, with ``load``.
    words : In(12)
        With ``load``.
    weight_read : Out(stream of 24-bit word addresses)
    weight_data : In(8 x C)
        With ``weight_valid``, once for each request.
    weight_valid : In(1)
    write : Out(TABLE_WRITE)
    done : Out(1)
        Everything is written.
    """

    load: Signal
    first: Signal
    words: Signal
    weight_read: stream.Interface
    weight_data: Signal
    weight_valid: Signal
    write: data.View
    done: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._word_bits = 8 * configuration.columns
        super().__init__(
            {
                "load": In(1),
                "first": In(POST_FIELDS["table_address"].width),
                "words": In(POST_FIELDS["table_words"].width),
                "weight_read": Out(stream.Signature(24)),
                "weight_data": In(self._word_bits),
                "weight_valid": In(1),
                "write": Out(TABLE_WRITE),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request = self.weight_read
        entries = self._word_bits // ENTRY_BITS
        words_left = Signal.like(self.words)
        under_way = Signal()
        word = Signal(self._word_bits)
        # with entries left, as a register: the whole word hangs on it
        entries_left, writing = Signal(range(entries + 1)), Signal()
        address = Signal(range(TABLE_ENTRIES))
        m.d.comb += [
            request.valid.eq(words_left.any() & ~under_way & (entries_left <= WEIGHT_READ_LATENCY)),
            self.write.enable.eq(writing),
            self.write.address.eq(address),
            self.write.data.eq(word[:ENTRY_BITS]),
        ]
        m.d.sync += self.done.eq(~(self.load | words_left.any() | under_way | writing))
        with m.If(self.load):
            m.d.sync += [request.payload.eq(self.first), words_left.eq(self.words), address.eq(0)]
        with m.If(request.valid & request.ready):
            m.d.sync += [
                request.payload.eq(request.payload + 1),
                words_left.eq(words_left - 1),
                under_way.eq(1),
            ]
        with m.If(self.write.enable):
            m.d.sync += [
                word.eq(word[ENTRY_BITS:]),
                entries_left.eq(entries_left - 1),
                writing.eq(entries_left != 1),
                address.eq(address + 1),
            ]
        with m.If(self.weight_valid):
            m.d.sync += [word.eq(self.weight_data), entries_left.eq(entries), under_way.eq(0)]
            m.d.sync += writing.eq(1)
        return m

"""Who uses the compact engine's memory in a cycle, and which part of the word is wanted."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..config import Configuration
from ..link.layouts import ByteWrite
from ..link.protocol import Space
from .memory_map import INSTRUCTION_BYTES, MemoryMap


class MemoryPort(wiring.Component):
    """One access a cycle: the engine's, which asks for one at most, else the link's.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    fetch, instruction_word : In
        A 32-bit word of the instructions is read.
    load, weight_word : In
        A word of the weights is read.
    look_up, table, entry : In
        A 32-bit entry of the table at weight word ``table``.
    read, read_address : In
        A byte of the activations, or the R bytes that it is in.
    write, write_address, byte : In
        A byte of the activations is written.
    window : In
        As ``read``, in a cycle in which ``waiting`` is low.
    link_writes, link_reads : In(stream)
        Bytes of any space but PARAMETERS, which are taken and go elsewhere; of the activations.
    waiting : Out
        The link's access may be in this cycle, if none of the engine's is. It comes a cycle before
        the access, from a register: all of the engine's loops hang on it.
    link_reading : Out
        A byte of ``link_reads`` is read.
    address, enables, store_byte, word_read : Out, Out, Out, In
        The memory's.
    half_word, operands, byte_read : Out
        Of the word read in the cycle before: the 32 bits, R bytes or byte that were wanted.
    """

    fetch: Signal
    instruction_word: Signal
    load: Signal
    weight_word: Signal
    look_up: Signal
    table: Signal
    entry: Signal
    read: Signal
    read_address: Signal
    write: Signal
    write_address: Signal
    byte: Signal
    window: Signal
    link_writes: stream.Interface
    link_reads: stream.Interface
    waiting: Signal
    link_reading: Signal
    address: Signal
    enables: Signal
    store_byte: Signal
    word_read: Signal
    half_word: Signal
    operands: data.View
    byte_read: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._map = MemoryMap(c)
        activation = ceil_log2(c.activation_bytes)
        weight = ceil_log2(c.weight_words)
        requests = ("fetch", "load", "look_up", "read", "write", "window")
        super().__init__(
            {
                **dict.fromkeys(requests, In(1)),
                "instruction_word": In(ceil_log2(c.instruction_words)),
                "weight_word": In(weight),
                "table": In(weight),
                "entry": In(9),
                "read_address": In(activation),
                "write_address": In(activation),
                "byte": In(8),
                "link_writes": In(stream.Signature(ByteWrite)),
                "link_reads": In(stream.Signature(24)),
                "waiting": Out(1),
                "link_reading": Out(1),
                "address": Out(ceil_log2(self._map.words)),
                "enables": Out(c.columns),
                "store_byte": Out(8),
                "word_read": In(8 * c.columns),
                "half_word": Out(32),
                "operands": Out(data.ArrayLayout(8, c.rows)),
                "byte_read": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        lane_bits = exact_log2(c.columns)
        part_bits = exact_log2(c.columns // INSTRUCTION_BYTES)
        busy = Cat(self.fetch, self.load, self.look_up, self.read, self.write).any()
        written = self.link_writes.payload
        elsewhere = written.space == Space.PARAMETERS
        writing = self.link_writes.valid & ~elsewhere
        # an access is a word of C bytes, the base of its space, and a lane within it
        word, base = Signal(len(self.address)), Signal(len(self.address))
        lane = Signal(lane_bits)

        def at(byte_address: Value) -> list:
            return [
                word.eq(byte_address[lane_bits:]),
                base.eq(self._map.activations),
                lane.eq(byte_address[:lane_bits]),
            ]

        def part(index: Value) -> list:
            low = Cat(Const(0, exact_log2(INSTRUCTION_BYTES)), index[:part_bits])
            return [word.eq(index[part_bits:]), lane.eq(low)]

        with m.If(self.fetch):
            m.d.comb += [*part(self.instruction_word), base.eq(self._map.instructions)]
        with m.Elif(self.look_up):
            m.d.comb += [*part(self.entry), base.eq(self.table)]
        with m.Elif(self.load):
            m.d.comb += word.eq(self.weight_word)
        with m.Elif(self.write):
            m.d.comb += at(self.write_address)
        with m.Elif(self.read | self.window):
            m.d.comb += at(self.read_address)
        with m.Elif(~writing):
            m.d.comb += at(self.link_reads.payload)
        with m.Elif(written.space == Space.WEIGHTS):
            m.d.comb += [word.eq(written.address), lane.eq(written.offset)]
        with m.Elif(written.space == Space.INSTRUCTIONS):
            m.d.comb += [*part(written.address), base.eq(self._map.instructions)]
            m.d.comb += lane[:2].eq(written.offset)
        with m.Else():
            m.d.comb += at(written.address)
        wanted = writing | self.link_reads.valid
        free = self.waiting & ~busy
        granted = writing & free
        m.d.sync += self.waiting.eq(wanted & ~free)
        m.d.comb += [
            self.address.eq(word + base),
            self.enables.eq(Mux(self.write | granted, 1 << lane, 0)),
            self.store_byte.eq(Mux(self.write, self.byte, written.data)),
            self.link_writes.ready.eq(elsewhere | free),
            self.link_reads.ready.eq(free & ~writing),
            self.link_reading.eq(self.link_reads.valid & self.link_reads.ready),
        ]
        self._select(m, lane)
        return m

    def _select(self, m: Module, lane: Signal) -> None:
        chosen = Signal.like(lane, name="chosen")
        row_bits = exact_log2(self._configuration.rows)
        m.d.sync += chosen.eq(lane)
        operands = self.word_read.word_select(chosen[row_bits:], 8 * self._configuration.rows)
        m.d.comb += [
            self.operands.eq(operands),
            self.byte_read.eq(operands.word_select(chosen[:row_bits], 8)),
            self.half_word.eq(self.word_read.word_select(chosen[2:], 32)),
        ]

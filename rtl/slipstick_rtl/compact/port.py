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
        A 32-bit entry of the table that begins at word ``table`` of the memory.
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
        # an access is a word of C bytes and a lane within it
        self._lane = Signal(exact_log2(c.columns))
        activation = ceil_log2(c.activation_bytes)
        weight = ceil_log2(c.weight_words)
        requests = ("fetch", "load", "look_up", "read", "write", "window")
        super().__init__(
            {
                **dict.fromkeys(requests, In(1)),
                "instruction_word": In(ceil_log2(c.instruction_words)),
                "weight_word": In(weight),
                "table": In(ceil_log2(self._map.words)),
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
        elsewhere = self.link_writes.payload.space == Space.PARAMETERS
        writing = self.link_writes.valid & ~elsewhere
        self._locate(m, writing)
        self._grant(m, elsewhere=elsewhere, writing=writing)
        self._select(m)
        return m

    def _locate(self, m: Module, writing: Value) -> None:
        """Addresses the access: the engine's if there is one, else the link's write or its read.

        What is to be added is added before the choice, which is what comes late.
        """
        written = self.link_writes.payload
        instruction, weight = self._map.instructions, self._map.weights
        with m.If(self.fetch):
            m.d.comb += self._part(self.instruction_word, instruction)
        with m.Elif(self.look_up):
            m.d.comb += self._part(self.entry, self.table)
        with m.Elif(self.load):
            m.d.comb += self.address.eq(self.weight_word + weight)
        with m.Elif(self.write):
            m.d.comb += self._byte(self.write_address)
        with m.Elif(self.read | self.window):
            m.d.comb += self._byte(self.read_address)
        with m.Elif(~writing):
            m.d.comb += self._byte(self.link_reads.payload)
        with m.Elif(written.space == Space.WEIGHTS):
            m.d.comb += self.address.eq(written.address + weight)
            m.d.comb += self._lane.eq(written.offset)
        with m.Elif(written.space == Space.INSTRUCTIONS):
            m.d.comb += self._part(written.address, instruction)
            m.d.comb += self._lane[:2].eq(written.offset)
        with m.Else():
            m.d.comb += self._byte(written.address)

    def _byte(self, address: Value) -> list:
        """The access is to this byte of the activations."""
        lane_bits = len(self._lane)
        return [self.address.eq(address[lane_bits:]), self._lane.eq(address[:lane_bits])]

    def _part(self, index: Value, base: Value | int) -> list:
        """The access is to 32 bits of a word, counted from its space's base."""
        part_bits = exact_log2(self._configuration.columns // INSTRUCTION_BYTES)
        low = Cat(Const(0, exact_log2(INSTRUCTION_BYTES)), index[:part_bits])
        return [self.address.eq(index[part_bits:] + base), self._lane.eq(low)]

    def _grant(self, m: Module, *, elsewhere: Value, writing: Value) -> None:
        """Do the access, and take the link's if it is that."""
        busy = Cat(self.fetch, self.load, self.look_up, self.read, self.write).any()
        wanted = writing | self.link_reads.valid
        free = self.waiting & ~busy
        granted = writing & free
        m.d.sync += self.waiting.eq(wanted & ~free)
        m.d.comb += [
            self.enables.eq(Mux(self.write | granted, 1 << self._lane, 0)),
            self.store_byte.eq(Mux(self.write, self.byte, self.link_writes.payload.data)),
            self.link_writes.ready.eq(elsewhere | free),
            self.link_reads.ready.eq(free & ~writing),
            self.link_reading.eq(self.link_reads.valid & self.link_reads.ready),
        ]

    def _select(self, m: Module) -> None:
        """Selects, from the word that comes, the part that was asked for in the cycle before."""
        chosen = Signal.like(self._lane, name="chosen")
        row_bits = exact_log2(self._configuration.rows)
        m.d.sync += chosen.eq(self._lane)
        operands = self.word_read.word_select(chosen[row_bits:], 8 * self._configuration.rows)
        m.d.comb += [
            self.operands.eq(operands),
            self.byte_read.eq(operands.word_select(chosen[:row_bits], 8)),
            self.half_word.eq(self.word_read.word_select(chosen[2:], 32)),
        ]

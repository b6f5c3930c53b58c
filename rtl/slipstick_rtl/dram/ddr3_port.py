"""Moves runs of 64-bit words between streams and a controller of DDR3, whose words are wider."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..primitives.stream_queue import StreamQueue
from .burst_port import COUNT_BITS, WORD_BYTES, burst_layout
from .ddr3 import Ddr3Settings
from .ddr3_signals import command_layout

_COMMANDS = 33
"""On their way, of each kind: a READ every other cycle, until the first one's words are there. A
queue has a power of two of places, and a register."""

HALVES = data.StructLayout({"low": 1, "high": 1, "last": 1})
"""Halves of a controller's word that a burst has, and whether it is the burst's last word."""


class Ddr3Port(wiring.Component):
    """Executes bursts in their order, without a pause between them if streams do not wait.

    A burst may begin and end in the middle of a controller's word: the other half is not written,
    or is read and dropped. All is in one clock domain, the controller's.

    Parameters
    ----------
    settings : Ddr3Settings
    depth : int
        Words that there is room for, in what takes ``reads`` and in what gives ``writes``.

    Members
    -------
    bursts : In(stream of burst_layout)
    writes : In(stream of WORD_BYTES)
        All bytes are written.
    writes_level : In
        Words that ``writes`` has at once: no WRITE is given before its words are there.
    reads : Out(stream of WORD_BYTES)
        It does not wait: ``reads_level`` says what there is room for.
    reads_level : In
        Words that have come by ``reads`` and have not left, two cycles late.
    write_done, read_done : Out
        A burst has ended: what it writes is with the chip, or its READs are.
    commands, written, write_taken, read_valid, read_data
        Of :class:`.ddr3_controller.Ddr3Controller`.
    """

    bursts: stream.Interface
    writes: stream.Interface
    writes_level: Signal
    reads: stream.Interface
    reads_level: Signal
    write_done: Signal
    read_done: Signal
    commands: stream.Interface
    written: data.View
    write_taken: Signal
    read_valid: Signal
    read_data: Signal

    def __init__(self, *, settings: Ddr3Settings, depth: int) -> None:
        if settings.word_bits != 16 * WORD_BYTES:
            raise ValueError(f"word_bits must be {16 * WORD_BYTES}, not {settings.word_bits}")
        self._depth = depth
        self._reading = StreamQueue(shape=HALVES, depth=_COMMANDS)
        self._writing = StreamQueue(shape=HALVES, depth=_COMMANDS)
        bits = settings.word_bits
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "writes_level": In(range(depth + 1)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "reads_level": In(range(depth + 1)),
                "write_done": Out(1),
                "read_done": Out(1),
                "commands": Out(stream.Signature(command_layout(settings))),
                "written": Out(data.StructLayout({"data": bits, "enable": bits // 8})),
                "write_taken": In(1),
                "read_valid": In(1),
                "read_data": In(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reading, m.submodules.writing = reading, writing = self._reading, self._writing
        write, busy = Signal(), Signal()
        halves = Signal(HALVES)
        left = Signal(COUNT_BITS)
        begins_high, ends_low, first = Signal(), Signal(), Signal()
        address = Signal(self.commands.payload.address.shape())
        words = Signal(2)
        may, given, ends = Signal(), Signal(), Signal()
        command, burst = self.commands, self.bursts.payload
        may_write = self._write(m, words, given & write)
        may_read = self._read(m, words, given & ~write)
        begin = burst.address[0]
        m.d.comb += [
            halves.low.eq(~(first & begins_high)),
            halves.high.eq(~(halves.last & ends_low)),
            halves.last.eq(left == 0),
            words.eq(halves.low + halves.high),
            given.eq(may & ~command.valid),
            ends.eq(given & halves.last),
            self.read_done.eq(ends & ~write),
            self.bursts.ready.eq(~busy | ends),
            writing.i.payload.eq(halves),
            writing.i.valid.eq(given & write),
            reading.i.payload.eq(halves),
            reading.i.valid.eq(given & ~write),
        ]
        # the controller takes one in two cycles: there is time for a register of the command, and
        # for one of whether the next may be given, which stays true until it is
        may_write &= writing.i.ready
        may_read &= reading.i.ready
        m.d.sync += may.eq(busy & Mux(write, may_write, may_read))
        with m.If(given):
            m.d.sync += [
                command.valid.eq(1),
                command.payload.write.eq(write),
                command.payload.address.eq(address),
                address.eq(address + 1),
                left.eq(left - 1),
                first.eq(0),
            ]
        with m.Elif(command.ready):
            m.d.sync += command.valid.eq(0)
        with m.If(self.bursts.ready):
            m.d.sync += [
                busy.eq(self.bursts.valid),
                write.eq(burst.write),
                address.eq(burst.address[1:]),
                left.eq((burst.last + begin) >> 1),
                first.eq(1),
                begins_high.eq(begin),
                ends_low.eq(~(burst.last[0] ^ begin)),
            ]
        return m

    def _write(self, m: Module, words: Value, given: Value) -> Value:
        """Gathers what is written; returns whether the next WRITE has its words."""
        halves, source = self._writing.o, self.writes
        # words that a WRITE has been given for and that have not been gathered
        promised = Signal(range(2 * _COMMANDS + 1))
        full, second, last = Signal(), Signal(), Signal()
        low = halves.payload.low & ~second
        moves, whole = Signal(), Signal()
        bits = 8 * WORD_BYTES
        held, enable = Signal(2 * bits), Signal(2)
        m.d.comb += [
            moves.eq(source.valid & halves.valid & (~full | self.write_taken)),
            whole.eq(moves & ~(low & halves.payload.high)),
            source.ready.eq(halves.valid & (~full | self.write_taken)),
            halves.ready.eq(whole),
            self.written.data.eq(held),
            self.written.enable.eq(Cat(bit.replicate(WORD_BYTES) for bit in enable)),
            self.write_done.eq(self.write_taken & last),
        ]
        m.d.sync += promised.eq(promised + Mux(given, words, 0) - moves)
        with m.If(whole):
            m.d.sync += full.eq(1)
        with m.Elif(self.write_taken):
            m.d.sync += full.eq(0)
        with m.If(moves):
            m.d.sync += [second.eq(~whole), last.eq(halves.payload.last)]
            with m.If(low):
                m.d.sync += [held[:bits].eq(source.payload), enable.eq(0b01)]
            with m.Else():
                m.d.sync += [held[bits:].eq(source.payload), enable.eq(Cat(second, 1))]
        return self.writes_level >= promised + words

    def _read(self, m: Module, words: Value, given: Value) -> Value:
        """Takes words of what is read apart; returns whether there is room for the next READ's."""
        halves = self._reading.o
        bits = 8 * WORD_BYTES
        held, came = Signal(2 * bits), Signal(2)
        # words that are wanted and that the level does not have
        wanted, moved = Signal(range(self._depth + 3)), Signal()
        m.d.comb += [
            halves.ready.eq(self.read_valid),
            self.reads.valid.eq(came.any()),
            self.reads.payload.eq(Mux(came[0], held[:bits], held[bits:])),
        ]
        # a controller's word comes every other cycle at most
        with m.If(self.read_valid):
            m.d.sync += held.eq(self.read_data)
            m.d.sync += came.eq(Cat(halves.payload.low, halves.payload.high))
        with m.Elif(came[0]):
            m.d.sync += came[0].eq(0)
        with m.Else():
            m.d.sync += came.eq(0)
        # the level is late by a cycle more than this
        m.d.sync += moved.eq(self.reads.valid)
        m.d.sync += wanted.eq(wanted + Mux(given, words, 0) - moved)
        return self.reads_level + wanted + words <= self._depth

"""Moves runs of words between wide streams and a DRAM controller, as fast as the chip can."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..primitives.delay import delay
from ..primitives.stream_queue import StreamQueue
from .controller import command_layout
from .ddr3 import Ddr3Settings
from .litedram import LiteDramSettings

WORD_BYTES = 8
"""Bytes of a word of the streams."""
COUNT_BITS = 16
"""Bits of a burst's length in words."""
_COMMAND_DEPTH = 5
"""Depth of the queue of commands: the controller says late in a cycle that it takes one."""
_READ_DEPTH = 17
"""Depth of the read queue, in words of the streams."""
_WRITE_DEPTH = 17
"""Depth of the write queue in the chip's words: more than the controller takes before it writes the
first. A queue has a power of two of places, and a register."""


def burst_layout(settings: LiteDramSettings | Ddr3Settings) -> data.StructLayout:
    """Words that lie side by side: their number less one, and the first one's address."""
    return data.StructLayout(
        {
            "write": 1,
            "address": settings.chip.word_address_bits - _parts_bits(settings),
            "last": COUNT_BITS,
        }
    )


def _parts_bits(settings: LiteDramSettings | Ddr3Settings) -> int:
    return exact_log2(8 * WORD_BYTES // settings.chip.data_bits)


class BurstPort(wiring.Component):
    """Executes bursts in their order, with a cycle between them if streams do not wait.

    A burst of reading begins when that of writing before it has all its commands taken; the chip
    executes them in order.

    Parameters
    ----------
    settings : LiteDramSettings

    Members
    -------
    bursts : In(stream of burst_layout)
    writes : In(stream of WORD_BYTES)
        All bytes are written.
    reads : Out(stream of WORD_BYTES)
        May wait: nothing is read that has no room.
    idle : Out
        No burst is under way, and all that was written is with the chip.
    commands, written, write_taken, read_valid, read_data
        Of :class:`.controller.DramController`.
    """

    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
    idle: Signal
    commands: stream.Interface
    written: data.View
    write_taken: Signal
    read_valid: Signal
    read_data: Signal

    def __init__(self, *, settings: LiteDramSettings) -> None:
        self._settings = settings
        self._owing = Signal()
        self._command = StreamQueue(shape=command_layout(settings), depth=_COMMAND_DEPTH)
        bits = settings.chip.data_bits
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
                "commands": Out(stream.Signature(command_layout(settings))),
                "written": Out(data.StructLayout({"data": bits, "enable": bits // 8})),
                "write_taken": In(1),
                "read_valid": In(1),
                "read_data": In(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings = self._settings
        m.submodules.command = self._command
        parts_bits = _parts_bits(settings)
        write, busy = Signal(), Signal()
        address = Signal(settings.chip.word_address_bits)
        # words behind the one at hand; whether there are none is known a cycle earlier
        left, last = Signal(COUNT_BITS + parts_bits), Signal()
        may = Signal()
        may_write, may_read = self._write(m, parts_bits), self._read(m, parts_bits)
        command, burst = self._command.i, self.bursts.payload
        connect(m, self._command.o, flipped(self.commands))
        given = command.valid & command.ready
        ends = given & last
        m.d.comb += [
            command.valid.eq(may),
            command.payload.write.eq(write),
            command.payload.address.eq(address),
            self.bursts.ready.eq(~busy | ends),
        ]
        # a register, for the clock: between bursts there is a cycle without a command
        m.d.sync += may.eq(busy & ~ends & Mux(write, may_write, may_read))
        with m.If(given):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1), last.eq(left == 1)]
        with m.If(self.bursts.ready):
            m.d.sync += busy.eq(self.bursts.valid)
            m.d.sync += [
                write.eq(burst.write),
                address.eq(burst.address << parts_bits),
                left.eq(Cat(*([1] * parts_bits), burst.last)),
                last.eq(0 if parts_bits else burst.last == 0),
            ]
        m.d.comb += self.idle.eq(~busy & ~self._owing)
        return m

    def _write(self, m: Module, parts_bits: int) -> Value:
        """The chip's words of what is written; returns whether one more WRITE has its word."""
        bits = self._settings.chip.data_bits
        m.submodules.narrow = narrow = StreamQueue(shape=bits, depth=_WRITE_DEPTH)
        part = Signal(parts_bits)
        wide = self.writes.payload
        parts = Array(wide.word_select(k, bits) for k in range(1 << parts_bits))
        # words that no command has been given for; they are seen when they can leave
        spare = Signal(range(_WRITE_DEPTH + 1))
        came, command = narrow.i.valid & narrow.i.ready, self._command.i
        promises = command.valid & command.ready & command.payload.write
        m.d.sync += spare.eq(spare + delay(m, came, 2, "came") - promises)
        m.d.comb += [
            self._owing.eq(narrow.level.any()),
            narrow.i.payload.eq(parts[part]),
            narrow.i.valid.eq(self.writes.valid),
            self.writes.ready.eq(narrow.i.ready & part.all()),
            self.written.data.eq(narrow.o.payload),
            self.written.enable.eq(~0),
            narrow.o.ready.eq(self.write_taken),
        ]
        with m.If(came):
            m.d.sync += part.eq(part + 1)
        # in a cycle's time
        return Mux(promises, spare > 1, spare.any())

    def _read(self, m: Module, parts_bits: int) -> Value:
        """Words of what is read; returns whether there is room for one more of the chip's."""
        bits = self._settings.chip.data_bits
        m.submodules.wide = wide = StreamQueue(shape=8 * WORD_BYTES, depth=_READ_DEPTH)
        part = Signal(parts_bits)
        before = Signal(8 * WORD_BYTES - bits)
        capacity = _READ_DEPTH << parts_bits
        # known two cycles late, in which two more may have been asked for; what leaves counts a
        # cycle later still: whoever takes it says so late in the cycle
        asked, room = Signal(range(capacity + 1)), Signal()
        command = self._command.i
        asks = command.valid & command.ready & ~command.payload.write
        leaves = delay(m, wide.o.valid & wide.o.ready, 1, "left")
        connect(m, wide.o, flipped(self.reads))
        m.d.comb += [
            wide.i.payload.eq(Cat(before, self.read_data)),
            wide.i.valid.eq(self.read_valid & part.all()),
        ]
        m.d.sync += [
            asked.eq(asked + asks - (leaves << parts_bits)),
            room.eq(asked < capacity - 3),
        ]
        with m.If(self.read_valid):
            m.d.sync += [part.eq(part + 1), before.eq(Cat(before, self.read_data)[bits:])]
        return room

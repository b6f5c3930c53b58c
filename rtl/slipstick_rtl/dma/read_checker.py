"""Takes the words that DRAM brings, and counts a CRC over those of a LOAD on their way."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out

from ..dram.burst_port import COUNT_BITS
from .transfer import WORD_BYTES

_WORD = 8 * WORD_BYTES


class ReadChecker(wiring.Component):
    """Hands words on, two cycles after they came or later, and counts the CRC-32 of those of data.

    Registers stand on both sides: that a unit takes a word does not reach the DRAM's queue in the
    same cycle. It moves a pointer to two words and no word: units say late that they take one, and
    words lie far from them on a full chip. The words of data come before the instruction behind
    them, so they are told apart by how many were asked for.

    Parameters
    ----------
    crc_bits : int
        Bits that the CRC takes per cycle, a part of a word that divides it. A word comes in
        ``64 / crc_bits`` cycles at most.

    Members
    -------
    start : In
        Strobe: a LOAD begins. The CRC is forgotten.
    promise : In
        Strobe: a burst of data was asked for.
    promised_last : In
        Its words less one.
    i : In(stream of WORD_BYTES)
    o : Out(stream of WORD_BYTES)
    crc : Out
        CRC-32 (Ethernet) of the data since ``start``; it counts a word when that has left.
    """

    start: Signal
    promise: Signal
    promised_last: Signal
    i: stream.Interface
    o: stream.Interface
    crc: Signal

    def __init__(self, *, crc_bits: int) -> None:
        if crc_bits < 1 or _WORD % crc_bits:
            raise ValueError(f"crc_bits must divide {_WORD}, not be {crc_bits}")
        self._bits = crc_bits
        super().__init__(
            {
                "start": In(1),
                "promise": In(1),
                "promised_last": In(COUNT_BITS),
                "i": In(stream.Signature(_WORD)),
                "o": Out(stream.Signature(_WORD)),
                "crc": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, held, is_data = Signal(_WORD), Signal(), Signal()
        slots, into, out_of = Array(Signal(_WORD) for _ in range(2)), Signal(), Signal()
        some, full, leaves = Signal(), Signal(), Signal()
        # modulo: no more are on their way than a burst has
        promised, arrived = Signal(COUNT_BITS), Signal(COUNT_BITS)
        owed = promised != arrived
        taken = self.i.valid & self.i.ready
        ready = Signal(init=1)
        with m.If(self.promise):
            m.d.sync += promised.eq(promised + self.promised_last + 1)
        with m.If(taken):
            m.d.sync += [word.eq(self.i.payload), is_data.eq(owed), arrived.eq(arrived + owed)]
        last, soon_last = self._count(m, word, held & is_data, held & ~full)
        stays, soon_full = Signal(), Signal()
        m.d.comb += [
            leaves.eq(held & last & ~full),
            stays.eq(held & ~leaves),
            self.i.ready.eq(ready),
            self.o.valid.eq(some),
            self.o.payload.eq(slots[out_of]),
        ]
        given = some & self.o.ready
        m.d.comb += soon_full.eq(~given & (full | (leaves & some)))
        m.d.sync += [
            held.eq(taken | stays),
            full.eq(soon_full),
            # a register: the DRAM's queue looks its next word up by it
            ready.eq(~(taken | stays) | (soon_last & ~soon_full)),
        ]
        with m.If(leaves):
            m.d.sync += [slots[into].eq(word), into.eq(~into)]
        with m.If(given):
            m.d.sync += [out_of.eq(~out_of), some.eq(leaves | full)]
        with m.Elif(leaves):
            m.d.sync += some.eq(1)
        return m

    def _count(self, m: Module, word: Signal, counts: Any, moves: Any) -> tuple[Value, Value]:
        """The CRC, which takes a word in parts; returns whether it is at the last one, and whether
        it will be in the next cycle."""
        parts = _WORD // self._bits
        crc: Any = CRC32_ETHERNET(data_width=self._bits).create()
        m.submodules.crc = crc
        part, last, soon = Signal(range(parts)), Signal(init=parts == 1), Signal()
        m.d.comb += soon.eq(1 if parts == 1 else Mux(moves, part == parts - 2, last))
        m.d.sync += last.eq(soon)
        if parts > 1:
            with m.If(moves):
                m.d.sync += part.eq(part + 1)
        chosen = Array(word.word_select(k, self._bits) for k in range(parts))[part]
        m.d.comb += [crc.start.eq(self.start), self.crc.eq(crc.crc)]
        m.d.sync += [crc.data.eq(chosen), crc.valid.eq(counts & moves)]
        return last, soon

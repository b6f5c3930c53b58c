"""The slots: datagrams wait for their turn, and their bytes go on in the order of the numbers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, ReadPort, WritePort
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .datagrams import LONGEST_SLOT, MOST_SLOTS

SLOT_WORD = data.StructLayout({"bytes": 32, "ending": 2, "last": 1})
"""Word of a slot: in a datagram's ``last`` one, ``ending`` is the number of its bytes less one.
With these bits, words are as wide as a block RAM of an ECP5, and no length has to be kept."""


def check_slots(slots: int, slot_bytes: int) -> None:
    """Raises ValueError unless a port can have so many slots of this size."""
    if slots not in (2, 4, 8, MOST_SLOTS):
        raise ValueError(f"slots must be a power of two within 2..{MOST_SLOTS}, not {slots}")
    if slot_bytes not in (256, 512, LONGEST_SLOT):
        raise ValueError(f"slot_bytes must be 256, 512 or {LONGEST_SLOT}, not {slot_bytes}")


class DatagramSlots(wiring.Component):
    """Stores words as they come, into a slot that is empty; they count when they are kept.

    A byte per cycle leaves, with four cycles of rest between datagrams.

    Parameters
    ----------
    slots, slot_bytes : int
        Powers of two, 2..16 and 256..1024.

    Members
    -------
    number : In(16)
        Of the datagram that comes; stays from the first ``store`` to ``ended``.
    body, store, body_last, ending, ended : In
        As of ``PacketReader``.
    keep : In
        Strobe, with ``ended``: it is a DATA of the owner.
    clear : In
        Strobe: all slots are empty, and numbers begin at 0. A byte that ``o`` offers stays, the
        rest of its datagram does not come.
    o : Out(stream of bytes)
    next : Out(16)
        The first datagram whose bytes have not all left.
    waiting : Out(slots)
        Bit i: datagram ``next + i`` is kept.
    report : Out
        Strobe: ``next`` goes on, or a datagram was dropped.
    """

    number: Signal
    body: Signal
    store: Signal
    body_last: Signal
    ending: Signal
    ended: Signal
    keep: Signal
    clear: Signal
    o: stream.Interface
    next: Signal
    waiting: Signal
    report: Signal

    def __init__(self, *, slots: int, slot_bytes: int) -> None:
        check_slots(slots, slot_bytes)
        self._slots = slots
        self._slot_words = slot_bytes // 4
        self._bits = exact_log2(slots)
        super().__init__(
            {
                "number": In(16),
                "body": In(32),
                "store": In(1),
                "body_last": In(1),
                "ending": In(2),
                "ended": In(1),
                "keep": In(1),
                "clear": In(1),
                "o": Out(stream.Signature(8)),
                "next": Out(16),
                "waiting": Out(slots),
                "report": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._slots * self._slot_words
        m.submodules.memory = memory = Memory(shape=SLOT_WORD, depth=depth, init=[])
        full = Signal(self._slots)
        gone = Signal()
        kept = self._store(m, memory.write_port(), full)
        self._leave(m, memory.read_port(), full, gone)
        m.d.comb += [
            self.waiting.eq(Cat(full, full) >> self.next[: self._bits]),
            self.report.eq(gone | self.keep & ~kept),
        ]
        with m.If(kept):
            m.d.sync += full.bit_select(self.number[: self._bits], 1).eq(1)
        with m.If(gone):
            m.d.sync += [
                full.bit_select(self.next[: self._bits], 1).eq(0),
                self.next.eq(self.next + 1),
            ]
        with m.If(self.clear):
            m.d.sync += [full.eq(0), self.next.eq(0)]
        return m

    def _store(self, m: Module, port: WritePort, full: Signal) -> Signal:
        """Words into an empty slot; whether the datagram that has ended is kept."""
        place = Signal(range(self._slot_words))
        slot = self.number[: self._bits]
        taken = full.bit_select(slot, 1)
        spoilt = Signal()
        in_window = Signal()
        kept = Signal()
        writes = Signal()
        m.d.comb += [
            port.addr.eq(Cat(place, slot)),
            port.data.eq(Cat(self.body, self.ending, self.body_last)),
            writes.eq(self.store & ~taken),
            port.en.eq(writes),
            kept.eq(self.keep & in_window & ~spoilt),
        ]
        # A cycle old, in which ``next`` may have gone on: a number that was in the window is
        # still there, for a slot that was full at the first word is spoilt.
        m.d.sync += in_window.eq((self.number - self.next)[self._bits : 16] == 0)
        with m.If(self.ended):
            m.d.sync += [place.eq(0), spoilt.eq(0)]
        with m.Elif(self.store):
            m.d.sync += [place.eq(place + 1), spoilt.eq(spoilt | taken)]
        return kept

    def _leave(self, m: Module, port: ReadPort, full: Signal, gone: Signal) -> None:
        """Bytes out of the slot whose turn it is."""
        place = Signal(range(self._slot_words))
        word = Signal(SLOT_WORD)
        byte = Signal(2)  # of the word
        m.d.comb += [
            port.addr.eq(Cat(place, self.next[: self._bits])),
            port.en.eq(1),
            self.o.payload.eq(word.bytes[:8]),
        ]
        end_of_word = byte == Mux(word.last, word.ending, 3)
        with m.FSM():
            with m.State("empty"):
                m.d.sync += [place.eq(0), byte.eq(0)]
                with m.If(full.bit_select(self.next[: self._bits], 1) & ~self.clear):
                    m.next = "fetch"
            with m.State("fetch"):
                m.next = "empty"
                with m.If(~self.clear):
                    m.next = "load"
            with m.State("load"):
                m.d.sync += [word.eq(port.data), place.eq(place + 1)]
                m.next = "empty"
                with m.If(~self.clear):
                    m.next = "bytes"
            with m.State("bytes"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += [byte.eq(byte + 1), word.bytes.eq(word.bytes >> 8)]
                    with m.If(end_of_word):
                        m.d.sync += [byte.eq(0), word.eq(port.data), place.eq(place + 1)]
                    with m.If(end_of_word & word.last):
                        m.next = "gone"
                with m.If(self.clear):
                    m.next = "offered"
                    with m.If(self.o.ready):
                        m.next = "empty"
            with m.State("offered"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "empty"
            with m.State("gone"):
                m.d.comb += gone.eq(1)
                m.next = "empty"

"""The read checker: words come in order, none is lost, and the CRC counts those of data, once."""

from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.dma.read_checker import ReadChecker
from slipstick_rtl.dma.transfer import WORD_BYTES

from .registry import Proof


class WordsInOrder(wiring.Component):
    """One word, at any place in the order, is unlike the others, and is followed.

    Bursts have one or two words; ``counted`` says that the CRC takes a part of a word.
    """

    words: stream.Interface
    o: stream.Interface
    promise: Signal
    two: Signal
    counted: Signal

    def __init__(self, *, crc_bits: int, cycles: int) -> None:
        self._bits, self._cycles = crc_bits, cycles
        super().__init__(
            {
                "words": In(stream.Signature(1)),
                "o": Out(stream.Signature(1)),
                "promise": In(1),
                "two": In(1),
                "counted": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checker = checker = ReadChecker(crc_bits=self._bits)
        parts = 8 * WORD_BYTES // self._bits
        count = range(2 * parts * (self._cycles + 1))
        came, left, place = Signal(count), Signal(count), Signal(count)
        promised, data, data_left, all_parts = (Signal(count) for _ in range(4))
        followed, is_data = Signal(), Signal(len(count))
        comes = self.words.valid & self.words.ready
        leaves = self.o.valid & self.o.ready
        chosen = self.words.payload[0]
        owed = promised != data
        m.d.comb += [
            checker.i.valid.eq(self.words.valid),
            checker.i.payload.eq(self.words.payload),
            self.words.ready.eq(checker.i.ready),
            self.o.valid.eq(checker.o.valid),
            self.o.payload.eq(checker.o.payload),
            checker.o.ready.eq(self.o.ready),
            checker.promise.eq(self.promise),
            checker.promised_last.eq(self.two),
            Assume(~(followed & comes & chosen), "one is followed"),
        ]
        m.d.sync += [
            came.eq(came + comes),
            left.eq(left + leaves),
            followed.eq(followed | (comes & chosen)),
            data.eq(data + (comes & owed)),
            all_parts.eq(all_parts + self.counted),
        ]
        with m.If(self.promise):
            m.d.sync += promised.eq(promised + 1 + self.two)
        with m.If(comes):
            m.d.sync += is_data.bit_select(came, 1).eq(owed)
        with m.If(comes & chosen):
            m.d.sync += place.eq(came)
        with m.If(leaves):
            m.d.sync += data_left.eq(data_left + is_data.bit_select(left, 1))
            m.d.comb += Assert(self.o.payload == (followed & (left == place)), "another word")
        m.d.comb += [
            Assert(left <= came, "a word from nowhere"),
            Assert(came - left <= 3, "more words than there are registers"),
            Assert(all_parts <= parts * data, "the CRC counts what is no data, or twice"),
            # the last part is on its way to the CRC when its word can leave
            Assert(all_parts + self.counted >= parts * data_left, "the CRC misses data"),
        ]
        return m


PROOFS = tuple(
    Proof(
        name=f"read_checker_{bits}_bits",
        component=lambda bits=bits, cycles=cycles: WordsInOrder(crc_bits=bits, cycles=cycles),
        depth=cycles,
        bounded=True,
        probes={"counted": "checker.crc.valid"},
    )
    for bits, cycles in ((64, 8), (32, 10), (16, 14))
)

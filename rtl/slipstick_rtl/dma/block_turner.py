"""Turns blocks of eight words on their way to the activation memory."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .box_walker import COUNT_BITS
from .transfer import TURNED_WORDS, WORD_BYTES

_WORD = 8 * WORD_BYTES


class BlockTurner(wiring.Component):
    """Takes ``TURNED_WORDS`` words per block, one per cycle, and then gives ``runs`` + 1 words.

    Byte i of the word that leaves as number j is byte j of the word that came as number i.

    Members
    -------
    start : In
        Strobe: a LOAD of blocks begins; only while not ``busy``.
    blocks, runs : In
        Less one. They hold until ``busy`` ends.
    i, o : In, Out(stream of WORD_BYTES)
    busy : Out
        Not all words have left. Otherwise none is taken.
    """

    start: Signal
    blocks: Signal
    runs: Signal
    i: stream.Interface
    o: stream.Interface
    busy: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "blocks": In(COUNT_BITS),
                "runs": In(range(TURNED_WORDS)),
                "i": In(stream.Signature(_WORD)),
                "o": Out(stream.Signature(_WORD)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # while a block comes, a lane takes the same byte of each word; then lanes move as a whole
        lanes = [Signal(_WORD, name=f"lane_{k}", reset_less=True) for k in range(WORD_BYTES)]
        count, full = Signal(range(TURNED_WORDS)), Signal()
        left, last = Signal(COUNT_BITS), Signal()
        comes, leaves, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(self.busy & ~full),
            self.o.valid.eq(full),
            self.o.payload.eq(lanes[0]),
            comes.eq(self.i.valid & self.i.ready),
            leaves.eq(full & self.o.ready),
            ends.eq(leaves & (count == self.runs)),
        ]
        for k, lane in enumerate(lanes):
            byte = self.i.payload.word_select(k, 8)
            with m.If(comes):
                m.d.sync += lane.eq(Cat(lane[8:], byte))
            with m.Elif(leaves):
                m.d.sync += lane.eq(lanes[(k + 1) % len(lanes)])
        with m.If(comes):
            m.d.sync += [count.eq(count + 1), full.eq(count == TURNED_WORDS - 1)]
        with m.If(leaves):
            m.d.sync += count.eq(count + 1)
        with m.If(ends):
            m.d.sync += [count.eq(0), full.eq(0), left.eq(left - 1), last.eq(left == 1)]
            m.d.sync += self.busy.eq(~last)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), left.eq(self.blocks), last.eq(self.blocks == 0)]
        return m

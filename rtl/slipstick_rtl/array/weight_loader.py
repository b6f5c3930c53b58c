"""The weight loader: reads the next reduction tile's weights while one is at work."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION


class WeightLoader(wiring.Component):
    """Takes CONVOLVEs and reads their tiles, R / W words each, the next one's ahead of its time.

    A tile's second word captures the first one's weights, in place of those of the tile before. So
    it is read the cycle after that tile's swap at the earliest, the first word as soon as may be.
    From then on a word a cycle is never too early, as the swap goes down a row a cycle.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream)
    reads : Out(stream)
        Word addresses. With ``diagonal`` the same one R / W times; with ``from_ninth`` eight for
        each word.
    step : Out
        Which of a tile's words the read is for.
    diagonal, from_ninth, whole, first, last : Out
        Of the read: only the weight of each column's own row counts; only its ninth bits count; it
        completes a word; it is for a tile's first word; and it is the tile's last.
    prepared, next_prepared : Out
        All words of a tile were read that was not swapped in: now, in the next cycle.
    swap : In
        The prepared tile goes to work; only while ``prepared``.
    """

    step: Signal
    diagonal: Signal
    from_ninth: Signal
    whole: Signal
    first: Signal
    last: Signal
    prepared: Signal
    next_prepared: Signal
    swap: Signal
    instructions: stream.Interface
    reads: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._words, self._has_ninth = configuration.tile_words, bool(configuration.ninth_bits)
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "reads": Out(stream.Signature(24)),
                "step": Out(range(self._words)),
                "diagonal": Out(1),
                "from_ninth": Out(1),
                "whole": Out(1),
                "first": Out(1),
                "last": Out(1),
                "prepared": Out(1),
                "next_prepared": Out(1),
                "swap": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        holding, begun, ending = Signal(), Signal(), Signal()
        address = Signal(24, reset_less=True)
        taken, ends, start = Signal(), Signal(), Signal()
        m.d.comb += [
            self.reads.payload.eq(address),
            self.first.eq(~begun),
            self.reads.valid.eq(holding & (self.first | ~self.prepared)),
            taken.eq(self.reads.valid & self.reads.ready),
            ends.eq(taken & ending),
            self.instructions.ready.eq(~holding | ends),
            start.eq(self.instructions.valid & self.instructions.ready),
        ]
        self._walk(m, taken, start, address, begun, ending)
        with m.If(start):
            m.d.sync += holding.eq(1)
        with m.Elif(ends):
            m.d.sync += holding.eq(0)
        m.d.comb += self.next_prepared.eq((taken & self.last) | (self.prepared & ~self.swap))
        m.d.sync += self.prepared.eq(self.next_prepared)
        return m

    def _walk(
        self, m: Module, taken: Value, start: Value, address: Signal, begun: Signal, ending: Signal
    ) -> None:
        """Prepares the next read in registers: that this one is taken is known late in a cycle."""
        given: data.View = self.instructions.payload
        tiles_left, final = Signal(16, reset_less=True), Signal()
        bit, last_word, advances = Signal(3), Signal(), Signal()
        next_whole, next_last_word, next_last = Signal(), Signal(), Signal()
        m.d.comb += [
            next_whole.eq(~self.from_ninth | (bit == 2 ** len(bit) - 2)),
            next_last_word.eq(Mux(self.whole, self.step == self._words - 2, last_word)),
            next_last.eq(next_last_word & next_whole),
        ]
        with m.If(taken):
            m.d.sync += [
                bit.eq(Mux(self.from_ninth, bit + 1, 0)),
                self.whole.eq(next_whole),
                last_word.eq(next_last_word),
                self.last.eq(next_last),
                advances.eq(next_last | ~self.diagonal),
                ending.eq(final & next_last),
            ]
            with m.If(self.whole):
                m.d.sync += [self.step.eq(Mux(self.last, 0, self.step + 1)), begun.eq(~self.last)]
            with m.If(advances):
                m.d.sync += address.eq(address + 1)
            with m.If(self.last):
                m.d.sync += [tiles_left.eq(tiles_left - 1), final.eq(tiles_left == 1)]
        with m.If(start):
            from_ninth = given.from_ninth if self._has_ninth else Const(0, 1)
            m.d.sync += [
                address.eq(given.weight_address),
                self.diagonal.eq(given.diagonal),
                self.from_ninth.eq(from_ninth),
                self.whole.eq(~from_ninth),
                advances.eq(~given.diagonal),
                tiles_left.eq(given.reduction_tiles - 1),
                final.eq(given.reduction_tiles == 1),
                ending.eq(0),
            ]

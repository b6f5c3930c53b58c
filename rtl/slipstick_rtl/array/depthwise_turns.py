"""The depthwise turns: which cycles complete an output pixel, and where its sums go."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import DEPTHWISE_KERNEL
from ..layouts import MATRIX_INSTRUCTION


class DepthwiseTurns(wiring.Component):
    """Counts the cycles that a group takes: of a depthwise CONVOLVE several, otherwise one.

    It takes two for each stream column behind the group before, or of a row's first window, of
    which the row before may have had the first one (``joined``). If the rows are made by twos, the
    first of a group's last two cycles completes the upper row's pixel and the second one the lower
    row's.

    Members
    -------
    instruction : In
        A CONVOLVE, sampled with ``start``.
    start, advance : In
        As the pixel counter's.
    row_ends, last_row : In
        With the last cycle of a row's, or block's, last group; in the tile's last row or block.
    ends, ending : Out
        This is the group's last cycle; the one before it.
    several : Out
        Groups take several cycles.
    down : Out
        The next cycle reads the lower half of the same stream column.
    next_down : Out
        With ``start`` or ``advance``: ``down`` in the next cycle.
    block : Out(2)
        Bit 0: a row or block begins with this cycle; bit 1: it is the tile's first.
    index, complete : Out
        Place in an accumulator bank, and whether there are sums for it.
    """

    instruction: data.View
    start: Signal
    advance: Signal
    row_ends: Signal
    last_row: Signal
    ends: Signal
    ending: Signal
    several: Signal
    down: Signal
    next_down: Signal
    block: Signal
    index: Signal
    complete: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "instruction": In(MATRIX_INSTRUCTION),
                "start": In(1),
                "advance": In(1),
                "row_ends": In(1),
                "last_row": In(1),
                "ends": Out(1),
                "ending": Out(1),
                "several": Out(1),
                "down": Out(1),
                "next_down": Out(1),
                "block": Out(2),
                "index": Out(12),
                "complete": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        source = self.instruction
        several, ends = Signal(reset_less=True), Signal(reset_less=True)
        first, others = 2 * DEPTHWISE_KERNEL - 1, Signal(5, reset_less=True)
        joined, single = Signal(reset_less=True), Signal(reset_less=True)
        left, ending = Signal(5, reset_less=True), Signal(reset_less=True)

        def restart(cycles: int | Value, several: Value, ends_next: Value | int) -> list:
            return [
                left.eq(Mux(several, cycles, 0)),
                ends.eq(~several),
                ending.eq(several & ends_next),
            ]

        # all counts of cycles are odd
        m.d.comb += self.next_down.eq(Mux(ends, several, ~left[0]))
        with m.If(self.start):
            m.d.comb += self.next_down.eq(source.depthwise)
            m.d.sync += [
                several.eq(source.depthwise),
                others.eq((source.skip << 1) - 1),
                single.eq(source.skip == 1),
                joined.eq(source.joined),
                *restart(first, source.depthwise, 0),
            ]
        with m.Elif(self.advance & ends):
            further = Mux(joined, first - 2, first)
            m.d.sync += restart(
                Mux(self.row_ends, further, others), several, single & ~self.row_ends
            )
        with m.Elif(self.advance):
            m.d.sync += [left.eq(left - 1), ends.eq(ending), ending.eq(left == 2)]
        m.d.comb += [
            self.several.eq(several),
            self.ends.eq(ends),
            self.ending.eq(ending),
            self.down.eq(left[0]),
        ]
        self._mark_blocks(m)
        self._place(m)
        return m

    def _mark_blocks(self, m: Module) -> None:
        """Marks the cycle with which a row, or a block of a depthwise CONVOLVE, begins."""
        begins, first_block = Signal(reset_less=True), Signal(reset_less=True)
        with m.If(self.start):
            m.d.sync += [begins.eq(1), first_block.eq(1)]
        with m.Elif(self.advance):
            m.d.sync += begins.eq(self.row_ends)
            with m.If(self.row_ends):
                m.d.sync += first_block.eq(0)
        m.d.comb += self.block.eq(Cat(begins, first_block))

    def _place(self, m: Module) -> None:
        """Rows by twos: down to the lower row's place, and back to the upper row's next one."""
        source = self.instruction
        index = Signal(12, reset_less=True)
        hop, back = Signal(12, reset_less=True), Signal(12, reset_less=True)
        odd_rows, twice = Signal(reset_less=True), Signal(reset_less=True)
        hop_now = Mux(made_by_twos(source), source.groups, 0)
        with m.If(self.start):
            m.d.sync += [
                index.eq(0),
                hop.eq(hop_now),
                back.eq(1 - hop_now),
                odd_rows.eq(source.rows[0]),
                twice.eq(made_by_twos(source)),
            ]
        with m.Elif(self.advance):
            onwards = Mux(self.row_ends, 1, back)
            m.d.sync += index.eq(index + Mux(self.ends, onwards, Mux(self.ending, hop, 0)))
        lower = ~self.several | (twice & ~(self.last_row & odd_rows))
        m.d.comb += [
            self.index.eq(index),
            self.complete.eq(self.ending | (self.ends & lower)),
        ]


def made_by_twos(instruction: data.View) -> Value:
    """Tells whether each stream column of a CONVOLVE serves two output rows."""
    return instruction.depthwise & ((instruction.skip == 1) | instruction.kept_rows)

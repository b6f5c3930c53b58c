"""Counts the turns of a loop; whether a turn is the last stands in a register."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class TurnCounter(wiring.Component):
    """Counts turns down, by one or by a stride, and starts anew after the last.

    A comparison of the count in the same cycle would lie on the way to all that the end of a loop
    moves; here it is made a turn earlier.

    Parameters
    ----------
    width : int
        Bits of the count.
    stride : int
        What a turn counts while ``strides``.

    Members
    -------
    start : In
        ``turns`` hold from the next cycle on.
    turns : In(width)
        At least 1; a multiple of the stride with ``strides_given``.
    strides_given, strides : In
        The stride is in force: for the turns that are given, and for those under way.
    advance : In
        Ends a turn.
    final : Out
        This turn is the last.
    """

    start: Signal
    turns: Signal
    strides_given: Signal
    strides: Signal
    advance: Signal
    final: Signal

    def __init__(self, *, width: int, stride: int = 1) -> None:
        self._width, self._stride = width, stride
        super().__init__(
            {
                "start": In(1),
                "turns": In(width),
                "strides_given": In(1),
                "strides": In(1),
                "advance": In(1),
                "final": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turns = Signal(self._width, reset_less=True)
        remaining = Signal(self._width, reset_less=True)
        single, only = Signal(reset_less=True), Signal()
        stride = self._stride
        m.d.comb += only.eq(self.turns == Mux(self.strides_given, stride, 1))
        with m.If(self.start):
            m.d.sync += [
                turns.eq(self.turns),
                remaining.eq(self.turns),
                single.eq(only),
                self.final.eq(only),
            ]
        with m.Elif(self.advance):
            next_final = Mux(self.strides, remaining == 2 * stride, remaining == 2)
            fewer = remaining - Mux(self.strides, stride, 1)
            m.d.sync += [
                remaining.eq(Mux(self.final, turns, fewer)),
                self.final.eq(Mux(self.final, single, next_final)),
            ]
        return m

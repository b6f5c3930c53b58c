"""What one column's stored products leave out, summed over its weights."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..numbers.int8 import Int8
from ..primitives.delay import delay


class CorrectionSum(wiring.Component):
    """Adds the corrections of a tile's R weights as they enter a column; the sums start from it.

    Parameters
    ----------
    number_format : Int8
        One whose weights have a correction.
    rows : int
        R.

    Members
    -------
    weight, capture, swap : In
        As the column's first element takes them.
    last : In
        The weight is the tile's last: R - 1 cycles after ``capture``.
    o : Out
        The correction of the tile at work; the first element's ``partial_sums``.
    """

    weight: Signal
    capture: Signal
    last: Signal
    swap: Signal
    o: Signal

    def __init__(self, *, number_format: Int8, rows: int) -> None:
        self._format = number_format
        self._bits = number_format.correction_bits + ceil_log2(rows)
        super().__init__(
            {
                "weight": In(number_format.stored_weight),
                "capture": In(1),
                "last": In(1),
                "swap": In(1),
                "o": Out(self._bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loading = Signal(self._bits, reset_less=True)
        working = Signal(self._bits, reset_less=True)
        one = self._format.correction(self.weight)
        within = Signal(reset_less=True)
        with m.If(self.last):
            m.d.sync += within.eq(0)
        with m.Elif(self.capture):
            m.d.sync += within.eq(1)
        with m.If(self.capture | within):
            m.d.sync += loading.eq(Mux(self.capture, 0, loading) + one)
        # the next tile's first weight may come in the cycle after the swap, and is seen in the next
        waiting = 1
        with m.If(delay(m, self.swap, waiting, "swap", reset_less=True)):
            m.d.sync += working.eq(loading)
        late = self._format.multiplier_latency - waiting
        m.d.comb += self.o.eq(delay(m, working, late, "working", reset_less=True))
        return m

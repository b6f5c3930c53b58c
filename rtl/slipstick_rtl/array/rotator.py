"""A barrel rotator of words, in two registered halves."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..primitives.delay import delay


class Rotator(wiring.Component):
    """Word k of the result is word ``(k + amount) mod count`` (or ``k - amount``, to the right).

    Parameters
    ----------
    width : int
        Bits of a word.
    count : int
        Words, a power of two.
    right : bool
        Rotate the other way: word k of the result is word ``(k - amount) mod count``.

    Members
    -------
    i, amount : In
    o : Out
        ``LATENCY`` cycles later.
    """

    i: data.View
    amount: Signal
    o: data.View

    LATENCY = 2

    def __init__(self, *, width: int, count: int, right: bool = False) -> None:
        self._right = right
        self._bits = exact_log2(count)
        words = data.ArrayLayout(width, count)
        super().__init__({"i": In(words), "amount": In(self._bits), "o": Out(words)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = [Value.cast(self.i[k]) for k in range(1 << self._bits)]
        half = self._bits // 2
        words = self._rotate(words, self.amount[:half], 1)
        words = [delay(m, word, 1, f"half_{k}", reset_less=True) for k, word in enumerate(words)]
        amount = delay(m, self.amount, 1, "amount", reset_less=True)
        words = self._rotate(words, amount[half:], 1 << half)
        m.d.comb += [
            self.o[k].eq(delay(m, word, 1, f"word_{k}", reset_less=True))
            for k, word in enumerate(words)
        ]
        return m

    def _rotate(self, words: list, amount: Value, step: int) -> list:
        for bit in amount:
            shift = -step if self._right else step
            count = len(words)
            words = [Mux(bit, words[(k + shift) % count], words[k]) for k in range(count)]
            step *= 2
        return words

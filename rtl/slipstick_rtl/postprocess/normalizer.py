"""The highest one of a word: its place, and the bits below it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives.delay import delay

_WORD_BITS = 32
_SHIFTS = (16, 8, 4, 2, 1)
_SEEN_AHEAD = 3
"""Shifts whose conditions are tested before the first shift, for every place they may look at."""


class Normalizer(wiring.Component):
    """Shifts a word to the left until its highest bit is one, a word a cycle, never stalling.

    Whether the upper half, quarter or eighth of what will be left holds a one is looked at for all
    places at which that may lie, in a cycle of its own; then each shift takes one cycle.

    Parameters
    ----------
    mantissa_bits : int
        Bits below the highest one that are wanted.

    Members
    -------
    i : In(32)
    place : Out(5)
        Of the highest one, ``latency`` cycles later.
    mantissa : Out
        The bits below it, those beyond the word 0.
    present : Out(1)
        There is one.
    """

    i: Signal
    place: Signal
    mantissa: Signal
    present: Signal

    latency = 1 + len(_SHIFTS)
    """Cycles: the conditions, and each shift."""

    def __init__(self, *, mantissa_bits: int) -> None:
        self._mantissa_bits = mantissa_bits
        super().__init__(
            {
                "i": In(_WORD_BITS),
                "place": Out(len(_SHIFTS)),
                "mantissa": Out(mantissa_bits),
                "present": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = delay(m, self.i, 1, "word", reset_less=True)
        ahead = self._seen_ahead(m)
        place: list[Value] = []
        for shift in _SHIFTS:
            stays = ahead[0][0] if ahead else word[-shift:].any()
            ahead = [
                delay(m, _half(flags, stays), 1, f"ahead_{shift}_{len(flags)}", reset_less=True)
                for flags in ahead[1:]
            ]
            # later shifts bring no more than this into what is wanted
            kept = min(len(word), self._mantissa_bits + shift)
            moved = Cat(Const(0, shift), word)[: len(word)]
            word = delay(m, Mux(stays, word, moved)[-kept:], 1, f"shifted_{shift}", reset_less=True)
            bits = Cat(stays, *place)
            place = list(delay(m, bits, 1, f"place_{shift}", reset_less=True))
        m.d.comb += [
            self.place.eq(Cat(place)),
            self.mantissa.eq(word[:-1]),
            self.present.eq(word[-1]),
        ]
        return m

    def _seen_ahead(self, m: Module) -> list[Value]:
        """Tests, for each of the first shifts, every place that it may look at for a one."""
        return [
            delay(
                m,
                Cat(self.i[low : low + shift].any() for low in range(shift, _WORD_BITS, 2 * shift)),
                1,
                f"ahead_{shift}",
                reset_less=True,
            )
            for shift in _SHIFTS[:_SEEN_AHEAD]
        ]


def _half(flags: Value, upper: Value) -> Value:
    """Keeps the half of a later shift's flags whose places are still possible after this shift."""
    half = len(flags) // 2
    return Mux(upper, flags[half:], flags[:half])

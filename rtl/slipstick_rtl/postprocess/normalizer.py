"""The highest one of a word: its place, and the bits below it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives.stages import Stages, busy_member

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
    silicon : int
        1: with a ``busy_member``.

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

    def __init__(self, *, mantissa_bits: int, silicon: int = 0) -> None:
        self._mantissa_bits, self._silicon = mantissa_bits, silicon
        super().__init__(
            {
                **busy_member(self.latency, silicon=silicon),
                "i": In(_WORD_BITS),
                "place": Out(len(_SHIFTS)),
                "mantissa": Out(mantissa_bits),
                "present": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = Stages.of(self, silicon=self._silicon)
        word = stages.delay(m, self.i, 0, 1, "word")
        ahead = self._seen_ahead(m, stages)
        place: list[Value] = []
        for stage, shift in enumerate(_SHIFTS, 1):
            stays = ahead[0][0] if ahead else word[-shift:].any()
            ahead = [
                stages.delay(m, _half(flags, stays), stage, 1, f"ahead_{shift}_{len(flags)}")
                for flags in ahead[1:]
            ]
            # later shifts bring no more than this into what is wanted
            kept = min(len(word), self._mantissa_bits + shift)
            moved = Cat(Const(0, shift), word)[: len(word)]
            shifted = Mux(stays, word, moved)[-kept:]
            word = stages.delay(m, shifted, stage, 1, f"shifted_{shift}")
            bits = Cat(stays, *place)
            place = list(stages.delay(m, bits, stage, 1, f"place_{shift}"))
        m.d.comb += [
            self.place.eq(Cat(place)),
            self.mantissa.eq(word[:-1]),
            self.present.eq(word[-1]),
        ]
        return m

    def _seen_ahead(self, m: Module, stages: Stages) -> list[Value]:
        """Tests, for each of the first shifts, every place that it may look at for a one."""
        return [
            stages.delay(
                m,
                Cat(self.i[low : low + shift].any() for low in range(shift, _WORD_BITS, 2 * shift)),
                0,
                1,
                f"ahead_{shift}",
            )
            for shift in _SHIFTS[:_SEEN_AHEAD]
        ]


def _half(flags: Value, upper: Value) -> Value:
    """Keeps the half of a later shift's flags whose places are still possible after this shift."""
    half = len(flags) // 2
    return Mux(upper, flags[half:], flags[:half])

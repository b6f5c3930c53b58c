"""A lane's requantiser that gradients need: pseudo-stochastic rounding, bytes, largest values."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import TrainingFlag
from ..numbers.rounding import FRACTION_BITS, STOCHASTIC_BITS
from .fields import InstructionField
from .multiplier import VALUE_BITS
from .product_rounder import LOWEST_BIT, ProductRounder
from .requantizer import Requantizer
from .rounding_shifter import RoundingShifter

_NOTING_DELAY = 1
"""Cycles: the addition of the bias."""

_INTEGER_BIT = 31
"""Lowest bit that a product with STOCHASTIC keeps: the multiplier brings the dropped ones below."""


class TrainingRequantizer(Requantizer):
    """A :class:`Requantizer` that also does what :class:`..isa.TrainingFlag` says.

    With ``stochastic`` the multiplier shifts a magnitude to the left until the bits to be dropped
    end below bit 31. The highest of them are compared with those behind them, whose place depends
    on ``shift``: the shifter itself always drops 31 bits.

    Members
    -------
    stochastic : In(1)
        In the same cycle as ``value``.
    as_bytes : In(1)
        ``zero_point_delay`` cycles after its value.
    positive : In(1)
        Negative sums do not count; ``noting_delay`` cycles after the value.
    noting : In(1)
        The value counts; ``noting_delay`` cycles after it.
    forgetting : In(1)
        Likewise; the notes are 0 afterwards.
    notes : Out(31)
        A cycle after ``noting``.
    Others as :class:`Requantizer` has them.
    """

    training = True

    stochastic: Signal
    as_bytes: Signal
    positive: Signal
    noting: Signal
    forgetting: Signal
    notes: Signal

    noting_delay = _NOTING_DELAY

    fields: Mapping[str, InstructionField] = {
        **Requantizer.fields,
        "stochastic": InstructionField(1, 0),
        "as_bytes": InstructionField(1, Requantizer.zero_point_delay),
        "positive": InstructionField(1, _NOTING_DELAY),
    }
    flags: Mapping[str, TrainingFlag] = {
        "stochastic": TrainingFlag.STOCHASTIC,
        "as_bytes": TrainingFlag.AS_BYTES,
        "positive": TrainingFlag.POSITIVE,
    }

    def _members(self) -> dict[str, wiring.Member]:
        return super()._members() | {
            "stochastic": In(1),
            "as_bytes": In(1),
            "positive": In(1),
            "noting": In(1),
            "forgetting": In(1),
            "notes": Out(VALUE_BITS - 1),
        }

    def _total(self, m: Module) -> Value:
        """Value or magnitude, and bias, in one addition: the lowest place makes a carry."""
        inverted = self._negated
        total = Signal(VALUE_BITS + 1)
        value = self.value.as_unsigned() ^ inverted.replicate(VALUE_BITS)
        m.d.comb += total.eq(Cat(inverted, value) + Cat(inverted, self.bias))
        return total[1:]

    @property
    def _negated(self) -> Value:
        return self.stochastic & self.value[-1]

    def _shift(self) -> Value:
        # bits from 31 up remain
        return Mux(self._late_stochastic, FRACTION_BITS, self.shift)

    def elaborate(self, platform: object) -> Module:
        self._late_stochastic = Signal()
        m = super().elaborate(platform)
        stochastic = self._stages.delay(m, self.stochastic, 0, self.shift_delay, "stochastic")
        m.d.comb += self._late_stochastic.eq(stochastic)
        return m

    def _finish(
        self, m: Module, total: Signal, rounder: ProductRounder, shifter: RoundingShifter
    ) -> tuple[Value, Value, Value]:
        """The sign comes back: -(q + up) is ~q + (1 - up)."""
        self._note(m, total)
        stages, came = self._stages, self.shift_delay
        inverted = stages.delay(m, self._negated, 0, self.zero_point_delay, "negated")
        left = RoundingShifter.latency
        stochastic = stages.delay(m, self._late_stochastic, came, left, "rounds")
        up = stages.delay(m, self._rounds_up(m, rounder.rounded), came + 2, left - 2, "up")
        increment = Mux(stochastic, up, shifter.increment & ~self.as_bytes) ^ inverted
        as_bytes = stages.delay(m, self.as_bytes, self.zero_point_delay, 1, "bytes")
        return inverted, increment, ~as_bytes

    def _rounds_up(self, m: Module, product: Value) -> Value:
        """Tells whether the fraction is more than the bits that follow it; two cycles later."""
        end = _INTEGER_BIT - LOWEST_BIT
        dropped: Any = product[end - 2 * STOCHASTIC_BITS : end]
        # half of the bits that are dropped, rounded up, less one; at most 7
        half = (self.shift - 1)[1:5]
        width = Mux(half[3], STOCHASTIC_BITS - 1, half[:3])
        places = range(1, STOCHASTIC_BITS + 1)
        taken = Array(dropped[2 * STOCHASTIC_BITS - k :] for k in places)[width]
        following = Array(dropped[max(0, 2 * (STOCHASTIC_BITS - k)) :][:k] for k in places)[width]
        fraction, chance, up = Signal(8), Signal(8), Signal()
        with self._stages.at(m, self.shift_delay):
            m.d.sync += [fraction.eq(taken), chance.eq(following)]
        with self._stages.at(m, self.shift_delay + 1):
            m.d.sync += up.eq(fraction > chance)
        return up

    def _note(self, m: Module, total: Signal) -> None:
        sign = total[-1]
        bits = (total[:-1] ^ sign.replicate(VALUE_BITS - 1)) & ~(sign & self.positive).replicate(31)
        with m.If(self.forgetting):
            m.d.sync += self.notes.eq(0)
        with m.Elif(self.noting):
            m.d.sync += self.notes.eq(self.notes | bits)

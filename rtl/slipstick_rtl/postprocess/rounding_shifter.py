"""Rounding right shift of a product by 24..62 bits, in the ways of ``isa.Rounding``."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..isa import Rounding
from ..numbers.rounding import FRACTION_BITS
from ..primitives.stages import Stages, busy_member
from .product_rounder import LOWEST_BIT, ROUNDED_BITS

SHIFT_BITS = 6
QUOTIENT_BITS = 10
"""Enough for int8 after any zero point; what does not fit is an overflow, and will be clamped."""

_STAGES = ((16, 26), (4, 14), (1, QUOTIENT_BITS + 1))
"""Stages of the shifter: unit of the shift (times 0..3), bits kept for the stages after it."""


class RoundingShifter(wiring.Component):
    """A product to a 10-bit quotient, a rounding increment and an overflow flag, one a cycle.

    The shift is taken 16 bits, then 4 bits, then 1 bit at a time; each stage keeps only the bits
    that the later ones can bring into the quotient, plus what was lost above (``overflow``) and
    below (sticky). What is rounded before that, :class:`ProductRounder` has rounded.

    Parameters
    ----------
    silicon : int
        1: with a ``busy_member``.

    Members
    -------
    product : In(signed(56))
        From bit 7 up, with ``sticky``, as ``ProductRounder`` gives it.
    sticky : In(1)
    shift : In(6)
        As ``encode_shift`` gives it, at most 40; in the same cycle.
    rounding : In(Rounding)
        ``rounding_delay`` cycles after the product.
    quotient : Out(signed(10))
        Rounded down; ``latency`` cycles after the product.
    increment : Out(1)
        The rounding adds one.
    overflow : Out(1)
        The quotient does not fit in 10 bits.
    negative : Out(1)
        The quotient's sign, also if it does not fit.
    """

    product: Signal
    sticky: Signal
    shift: Signal
    rounding: Signal
    quotient: Signal
    increment: Signal
    overflow: Signal
    negative: Signal

    rounding_delay = len(_STAGES)

    latency = rounding_delay + 1
    """Cycles: three stages of the shift, the decision on the increment."""

    def __init__(self, *, silicon: int = 0) -> None:
        self._silicon = silicon
        super().__init__(
            {
                **busy_member(self.latency, silicon=silicon),
                "product": In(signed(ROUNDED_BITS)),
                "sticky": In(1),
                "shift": In(SHIFT_BITS),
                "rounding": In(Rounding),
                "quotient": Out(signed(QUOTIENT_BITS)),
                "increment": Out(1),
                "overflow": Out(1),
                "negative": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = Stages.of(self, silicon=self._silicon)
        double = self.rounding == Rounding.DOUBLE
        # from 2^21 up: that bit is 0, and becomes the half bit
        first = 31 - FRACTION_BITS - LOWEST_BIT
        window: Value = Cat(Const(0, 1), self.product[first:])
        sticky: Value = self.sticky | self.product[:first].any()
        sign = stages.delay(m, window[-1], 0, len(_STAGES), "sign")
        overflow: Value = Const(0)
        for stage, (unit, keep) in enumerate(_STAGES):
            shift = stages.delay(m, self.shift, 0, stage, f"shift_{stage}")
            amount = shift[exact_log2(unit) :][:2]
            with stages.at(m, stage):
                window, above, below = _shift_stage(m, window, amount, unit, keep)
            overflow = stages.delay(m, overflow, stage, 1, f"overflow_{stage}") | above
            sticky = stages.delay(m, sticky, stage, 1, f"sticky_{stage}") | below

        half, quotient = window[0], window[1:]
        breaks_tie = Mux(double, ~sign, (self.rounding == Rounding.HALF_UP) | quotient[0])
        decided = (
            (self.quotient, quotient),
            (self.increment, half & (sticky | breaks_tie)),
            (self.overflow, overflow),
            (self.negative, sign),
        )
        for k, (port, value) in enumerate(decided):
            m.d.comb += port.eq(stages.delay(m, value, len(_STAGES), 1, f"decided_{k}"))
        return m


def _shift_stage(
    m: Module, window: Value, amount: Value, unit: int, keep: int
) -> tuple[Value, Value, Value]:
    """``window`` shifted right by ``amount`` units, a cycle later, cut to ``keep`` bits.

    Also whether the cut changed the value, and whether the shift dropped a one.
    """
    size = len(window)
    extended = Cat(window, window[-1].replicate(3 * unit + keep))
    shifted = Signal(keep, name=f"window_{unit}", reset_less=True)
    above = Signal(name=f"above_{unit}", reset_less=True)
    below = Signal(name=f"below_{unit}", reset_less=True)
    # each unit of bits counts for some of the amounts: together they are looked at once
    changed: Value = Const(0)
    dropped: Value = Const(0)
    for units in range(4):
        low, top = units * unit, min(keep - 1 + units * unit, size - 1)
        end = min(top + unit, size - 1)
        dropped |= (amount > units) & window[min(low, size) : min(low + unit, size)].any()
        unequal = window[top + 1 : end + 1] ^ window[top].replicate(end - top)
        changed |= (amount <= units) & unequal.any()
    # by two units, then by one: two bits of the result share the first choice
    coarse = Mux(amount[1], extended[2 * unit :][: keep + unit], extended[: keep + unit])
    m.d.sync += [
        shifted.eq(Mux(amount[0], coarse[unit:], coarse[:keep])),
        above.eq(changed),
        below.eq(dropped),
    ]
    return shifted, above, below

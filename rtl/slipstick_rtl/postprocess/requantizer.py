"""One lane of requantisation: a 32-bit sum to int8, in the rounding that the instruction names."""

from collections.abc import Mapping
from typing import ClassVar

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import Rounding
from ..primitives.stages import Stages, busy_member
from .fields import InstructionField, ParameterField
from .multiplier import FACTOR_BITS, VALUE_BITS, PipelinedMultiplier
from .product_rounder import GROUPED_LATENCY, ProductRounder
from .rounding_shifter import QUOTIENT_BITS, SHIFT_BITS, RoundingShifter


class Requantizer(wiring.Component):
    """clamp(requantize(value + bias, multiplier, shift) + zero_point), one a cycle, never stalling.

    Bit for bit :func:`slipstick_rtl.numbers.rounding.requantize` and ``clamp``. The parameters are
    taken later than the value, where they are used: registers that change when the first value of
    an instruction or a slice comes by cost less than parameters that travel beside each value.

    Members
    -------
    value : In(signed(32))
    bias : In(signed(32))
        In the same cycle as ``value``; their sum wraps at 32 bits.
    multiplier : In(31)
        ``multiplier_delay`` cycles after its value.
    rounding : In(Rounding)
        ``rounding_delay`` cycles after its value.
    shift : In(6)
        ``shift_delay`` cycles after its value; as ``encode_shift`` gives it.
    zero_point : In(signed(8))
        ``zero_point_delay`` cycles after its value.
    minimum, maximum : In(signed(8))
        ``clamp_delay`` cycles after its value.
    result : Out(signed(8))
        ``latency`` cycles after its value.
    busy : In(latency)
        With ``silicon``: a ``busy_member``.
    """

    training: ClassVar[bool] = False
    """True for a :class:`TrainingRequantizer`."""

    value: Signal
    bias: Signal
    multiplier: Signal
    shift: Signal
    rounding: Signal
    zero_point: Signal
    minimum: Signal
    maximum: Signal
    result: Signal

    multiplier_delay = 1
    """Cycles: the addition of the bias."""

    rounding_delay = multiplier_delay + PipelinedMultiplier.latency

    shift_delay = rounding_delay + GROUPED_LATENCY

    zero_point_delay = shift_delay + RoundingShifter.latency

    clamp_delay = zero_point_delay + 1

    latency = clamp_delay + 1
    """Cycles: all parts, the addition of the zero point and the clamp."""

    parameters: Mapping[str, ParameterField] = {
        "bias": ParameterField(0, 32, VALUE_BITS, 0),
        "multiplier": ParameterField(32, 32, FACTOR_BITS, multiplier_delay),
        "shift": ParameterField(64, 8, SHIFT_BITS, shift_delay),
    }
    fields: Mapping[str, InstructionField] = {
        "rounding": InstructionField(Rounding, rounding_delay),
        "zero_point": InstructionField(signed(8), zero_point_delay),
        "minimum": InstructionField(signed(8), clamp_delay),
        "maximum": InstructionField(signed(8), clamp_delay),
    }

    def __init__(self, *, silicon: int = 0) -> None:
        self._silicon = silicon
        super().__init__(self._members() | busy_member(self.latency, silicon=silicon))

    def _members(self) -> dict[str, wiring.Member]:
        return {
            "value": In(signed(VALUE_BITS)),
            "bias": In(signed(VALUE_BITS)),
            "multiplier": In(unsigned(FACTOR_BITS)),
            "shift": In(SHIFT_BITS),
            "rounding": In(Rounding),
            "zero_point": In(signed(8)),
            "minimum": In(signed(8)),
            "maximum": In(signed(8)),
            "result": Out(signed(8)),
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._stages = stages = Stages.of(self, silicon=self._silicon)
        m.submodules.scaler = multiplier = PipelinedMultiplier(silicon=self._silicon)
        m.submodules.rounder = rounder = ProductRounder(in_groups=True, silicon=self._silicon)
        m.submodules.shifter = shifter = RoundingShifter(silicon=self._silicon)
        stages.lead(m, multiplier, self.multiplier_delay)
        stages.lead(m, rounder, self.rounding_delay)
        stages.lead(m, shifter, self.shift_delay)
        # no reset in here: what is under way leaves without being written
        total = Signal(signed(VALUE_BITS), reset_less=True)
        with stages.at(m, 0):
            m.d.sync += total.eq(self._total(m))
        came = self.rounding_delay
        late_product = stages.delay(m, multiplier.product, came, 1, "product")
        deciding = GROUPED_LATENCY + RoundingShifter.rounding_delay
        m.d.comb += [
            multiplier.value.eq(total),
            multiplier.factor.eq(self.multiplier),
            rounder.product.eq(multiplier.product),
            rounder.late_product.eq(late_product),
            rounder.rounding.eq(self.rounding),
            shifter.product.eq(rounder.rounded),
            shifter.sticky.eq(rounder.sticky),
            shifter.shift.eq(self._shift()),
            shifter.rounding.eq(stages.delay(m, self.rounding, came, deciding, "rounding")),
        ]

        offset = Signal(signed(QUOTIENT_BITS + 1), reset_less=True)
        overflow, negative = Signal(reset_less=True), Signal(reset_less=True)
        result = Signal(signed(8), reset_less=True)
        inverted, increment, clamped = self._finish(m, total, rounder, shifter)
        quotient = (shifter.quotient.as_unsigned() ^ inverted.replicate(QUOTIENT_BITS)).as_signed()
        with stages.at(m, self.zero_point_delay):
            m.d.sync += [
                offset.eq(quotient + self.zero_point + increment),
                overflow.eq(shifter.overflow),
                negative.eq(shifter.negative ^ inverted),
            ]
        below = clamped & Mux(overflow, negative, offset < self.minimum)
        above = clamped & Mux(overflow, ~negative, offset > self.maximum)
        with stages.at(m, self.clamp_delay):
            m.d.sync += result.eq(
                Mux(above, self.maximum, Mux(below, self.minimum, offset[:8].as_signed()))
            )
        m.d.comb += self.result.eq(result)
        return m

    def _total(self, m: Module) -> Value:
        return self.value + self.bias

    def _shift(self) -> Value:
        return self.shift

    def _finish(
        self, m: Module, total: Signal, rounder: ProductRounder, shifter: RoundingShifter
    ) -> tuple[Value, Value, Value]:
        """Returns the quotient's inversion flag, its increment, and its clamp flag."""
        return Const(0), shifter.increment, Const(1)

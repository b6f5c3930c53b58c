"""The compact engine's requantiser: taps into a value, a value into a byte, R digits a cycle."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import Rounding
from ..postprocess.multiplier import VALUE_BITS
from ..postprocess.product_rounder import LATENCY, ProductRounder
from ..postprocess.rounding_shifter import QUOTIENT_BITS, SHIFT_BITS, RoundingShifter
from ..primitives.delay import delay
from ..primitives.load_adder import LoadAdder
from .product import DigitProduct


class TapSum(wiring.Component):
    """Sum or maximum of taps.

    Members
    -------
    tap : In(signed(32))
    valid, first : In
        There is a tap, and it begins a result.
    maximum : In
    value : Out(signed(32))
        Of the taps before this cycle.
    """

    tap: Signal
    valid: Signal
    first: Signal
    maximum: Signal
    value: Signal

    def __init__(self) -> None:
        word = signed(VALUE_BITS)
        inputs = {"tap": In(word), "valid": In(1), "first": In(1), "maximum": In(1)}
        super().__init__({**inputs, "value": Out(word)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adder = adder = LoadAdder(width=VALUE_BITS)
        difference = Signal(signed(VALUE_BITS + 1))
        m.d.comb += [
            difference.eq(self.value - self.tap),
            adder.a.eq(self.value),
            adder.b.eq(self.tap),
            adder.load.eq(self.first | self.maximum),
        ]
        kept = self.maximum & ~self.first & ~difference[-1]
        with m.If(self.valid & ~kept):
            m.d.sync += self.value.eq(adder.o)
        return m


class CompactRequantizer(wiring.Component):
    """clamp(requantize(value + bias, multiplier, shift) + zero_point), once in ``passes`` cycles.

    Bit for bit :func:`slipstick_rtl.numbers.rounding.requantize` and ``clamp``. The multiplier's
    digits are the multipliers' factors meanwhile.

    Parameters
    ----------
    configuration : Configuration
    sums : data.ArrayLayout
        Of the multipliers.

    Members
    -------
    value : In(signed(32))
    valid : In
    bias, shift : In
        As :class:`CompactParameters` gives them; constant while values are under way, as the rest.
    rounding : In(Rounding)
    zero_point, minimum, maximum : In(signed(8))
    operands, sums : Out, In
        The multipliers'.
    result : Out(signed(8))
    done : Out
        Strobe, ``latency`` cycles after ``valid``: ``result`` is there, for that cycle.
    """

    value: Signal
    valid: Signal
    bias: Signal
    shift: Signal
    rounding: Signal
    zero_point: Signal
    minimum: Signal
    maximum: Signal
    operands: data.View
    sums: data.View
    result: Signal
    done: Signal

    def __init__(self, *, configuration: Configuration, sums: data.ArrayLayout) -> None:
        self._product = DigitProduct(configuration=configuration, sums=sums)
        super().__init__(
            {
                "value": In(signed(VALUE_BITS)),
                "valid": In(1),
                "bias": In(VALUE_BITS),
                "shift": In(SHIFT_BITS),
                "rounding": In(Rounding),
                "zero_point": In(signed(8)),
                "minimum": In(signed(8)),
                "maximum": In(signed(8)),
                "operands": Out(self._product.operands.shape()),
                "sums": In(sums),
                "result": Out(signed(8)),
                "done": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles: the bias, the product, its roundings and the shift, the zero point, the clamp."""
        return 1 + self._product.latency + LATENCY + RoundingShifter.latency + 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.product = product = self._product
        m.submodules.rounder = rounder = ProductRounder()
        m.submodules.shifter = shifter = RoundingShifter()
        with m.If(self.valid):
            m.d.sync += product.value.eq(self.value + self.bias)
        m.d.sync += product.valid.eq(self.valid)
        m.d.comb += [
            self.operands.eq(product.operands),
            product.sums.eq(self.sums),
            rounder.product.eq(product.product),
            rounder.late_product.eq(product.late_product),
            rounder.rounding.eq(self.rounding),
            shifter.product.eq(rounder.rounded),
            shifter.sticky.eq(rounder.sticky),
            shifter.shift.eq(self.shift),
            shifter.rounding.eq(self.rounding),
            self.done.eq(delay(m, self.valid, self.latency, "valid")),
        ]
        offset = Signal(signed(QUOTIENT_BITS + 1), reset_less=True)
        overflow, negative = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            offset.eq(shifter.quotient + self.zero_point + shifter.increment),
            overflow.eq(shifter.overflow),
            negative.eq(shifter.negative),
        ]
        below = Mux(overflow, negative, offset < self.minimum)
        above = Mux(overflow, ~negative, offset > self.maximum)
        m.d.sync += self.result.eq(
            Mux(above, self.maximum, Mux(below, self.minimum, offset[:8].as_signed()))
        )
        return m

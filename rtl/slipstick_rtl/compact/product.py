"""A 32 x 31-bit product out of the sums of digit products: the requantiser's multiplication."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import DIGITS, Configuration
from ..postprocess.multiplier import PRODUCT_BITS, VALUE_BITS
from ..primitives.delay import delay
from .multipliers import DIGIT_BITS, SUM_LATENCY
from .parameters import DIGIT_OFFSET

_PART_BITS = 48
"""Enough for the sums of half the columns."""


def passes(configuration: Configuration) -> int:
    """Cycles in which a value's digits go through the multipliers: R at a time, and the fifth."""
    return VALUE_BITS // (DIGIT_BITS * configuration.rows) + 1


class DigitProduct(wiring.Component):
    """Sends a value's digits through the multipliers, R a cycle, and adds up what comes back.

    A value must not come earlier than ``passes`` cycles after the one before.

    Parameters
    ----------
    configuration : Configuration
    sums : data.ArrayLayout
        Of the multipliers.

    Members
    -------
    value : In(32)
        Plus 0x80808080, modulo 2^32; held for ``passes`` cycles from ``valid`` on.
    valid : In
    operands : Out
        [R] digits for the multipliers, whose factors are the digits of the multiplier.
    sums : In
    product : Out(signed(63))
        ``latency`` cycles after ``valid``, for that cycle.
    late_product : Out(signed(63))
        A cycle later.
    """

    value: Signal
    valid: Signal
    operands: data.View
    sums: data.View
    product: Signal
    late_product: Signal

    def __init__(self, *, configuration: Configuration, sums: data.ArrayLayout) -> None:
        self._rows, self._passes = configuration.rows, passes(configuration)
        super().__init__(
            {
                "value": In(VALUE_BITS),
                "valid": In(1),
                "operands": Out(data.ArrayLayout(DIGIT_BITS, configuration.rows)),
                "sums": In(sums),
                "product": Out(signed(PRODUCT_BITS)),
                "late_product": Out(signed(PRODUCT_BITS)),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles: all passes but the first, the multipliers, the parts, their sum."""
        return self._passes - 1 + SUM_LATENCY + 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turns = [self.valid]
        for k in range(1, self._passes):
            turns.append(delay(m, turns[-1], 1, f"turn_{k}"))
        fifth = _is_below_offset(self.value)
        for r in range(self._rows):
            low = self.value.word_select(r, DIGIT_BITS) ^ DIGIT_OFFSET
            digit: Value = Mux(turns[0], low, fifth if r == 0 else 0)
            for k in range(1, self._passes - 1):
                later = self.value.word_select(k * self._rows + r, DIGIT_BITS) ^ DIGIT_OFFSET
                digit = Mux(turns[k], later, digit)
            m.d.comb += self.operands[r].eq(digit)

        low_part, high_part = (Signal(signed(_PART_BITS), name=f"part_{k}") for k in range(2))
        half = (self._rows + DIGITS - 1) // 2
        m.d.sync += [
            low_part.eq(self._combine(0, half)),
            high_part.eq(self._combine(half, self._rows + DIGITS - 1)),
        ]
        first = delay(m, self.valid, SUM_LATENCY + 1, "first")
        step = DIGIT_BITS * self._rows
        high = Signal(signed(VALUE_BITS + step + 1), reset_less=True)
        low = Signal(VALUE_BITS, reset_less=True)
        rest = high[step:].as_signed()
        m.d.sync += [
            high.eq(Mux(first, 0, rest) + low_part + (high_part << (DIGIT_BITS * half))),
            low.eq(Cat(low[step:], high[:step]) if step < VALUE_BITS else high[:step]),
        ]
        # a cycle later the middle of the product has only moved
        m.d.comb += [
            self.product.eq(Cat(low, high)),
            self.late_product.eq(
                Cat(
                    delay(m, self.product[:step], 1, "lowest", reset_less=True),
                    low,
                    delay(m, self.product[step + VALUE_BITS :], 1, "highest", reset_less=True),
                )
            ),
        ]
        return m

    def _combine(self, first: int, end: int) -> Value:
        """Sums of some columns, each a digit place above the one before."""
        total: Value = self.sums[first]
        bytes_below = []
        for column in range(first + 1, end):
            bytes_below.append(total[:DIGIT_BITS])
            total = (total >> DIGIT_BITS) + self.sums[column]
        return Cat(*bytes_below, total).as_signed()


def _is_below_offset(value: Value) -> Value:
    """Tells whether an offset value has a fifth digit: less 0x80 a byte it would be below -2^31.

    That is below 0x808080. Said digit by digit, as a subtraction would take a cell a bit.
    """
    below: Value = Const(0)
    for place in range(VALUE_BITS // DIGIT_BITS - 1):
        digit = value.word_select(place, DIGIT_BITS)
        below = ~digit[-1] | ~digit[:-1].any() & below
    return ~value[-DIGIT_BITS:].any() & below

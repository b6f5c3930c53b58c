"""A logarithmic element's product, and the place of a word's highest one, by their definitions."""

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.log_format import LogFormat
from slipstick_rtl.numbers.lns.log_multiplier import LogMultiplier
from slipstick_rtl.postprocess.multiplier import VALUE_BITS
from slipstick_rtl.postprocess.normalizer import Normalizer
from slipstick_rtl.primitives.delay import delay

from .registry import Proof


def _choose(m: Module, entries: list[int], index: Value, name: str) -> Signal:
    """An entry of a table, by comparing the index with every place."""
    entry = Signal(range(max(entries) + 1), name=name)
    with m.Switch(index):
        for place, value in enumerate(entries):
            with m.Case(place):
                m.d.comb += entry.eq(value)
    return entry


class LogProduct(wiring.Component):
    """``LogMultiplier`` and the sum's gates beside ``ArrayArithmetic.multiply``."""

    activation: Signal
    weight: Signal

    def __init__(self, *, lns: Lns) -> None:
        self._arithmetic = ArrayArithmetic(lns)
        super().__init__({"activation": In(signed(8)), "weight": In(signed(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arithmetic = self._arithmetic
        number_format, largest = LogFormat(arithmetic), arithmetic.lns.largest_code
        latency = number_format.multiplier_latency
        m.submodules.multiplier = multiplier = LogMultiplier(arithmetic=arithmetic, pixels=1)
        # the weight is at work a cycle after it is given
        weight = delay(m, self.weight, 1, "weight")
        for operand in (self.activation, self.weight):
            m.d.comb += Assume((operand >= -largest) & (operand <= largest), "it is a code")
        m.d.comb += [
            Value.cast(multiplier.activations[0]).eq(number_format.encode(self.activation)),
            multiplier.weight.eq(number_format.store(self.weight)),
            multiplier.swap.eq(1),
        ]
        operand, ones = number_format.addend(multiplier, 0)
        width = arithmetic.product_bits + 1
        product = Signal(signed(width))
        one = ones[0] & ones[1] if ones else Const(0)
        m.d.comb += product.eq(operand.bits(width) + one)
        expected = delay(m, self._define(m, weight), latency, "expected")
        with m.If(delay(m, Const(1), latency + 1, "started")):
            m.d.comb += Assert(product == expected, "another product")
        return m

    def _define(self, m: Module, weight: Value) -> Value:
        arithmetic, fraction = self._arithmetic, self._arithmetic.lns.fraction_bits
        total = Signal(8)
        m.d.comb += total.eq(abs(self.activation) + abs(weight))
        entry = _choose(m, arithmetic.antilog.tolist(), total[:fraction], "entry")
        shifted = (entry << total[fraction:]) >> arithmetic.dropped_places
        product = Signal(signed(arithmetic.product_bits + 1))
        negative = (self.activation < 0) ^ (weight < 0)
        nothing = (self.activation == 0) | (weight == 0)
        m.d.comb += product.eq(Mux(nothing, 0, Mux(negative, -shifted, shifted)))
        return product


class PlaceOfHighestOne(wiring.Component):
    """``Normalizer`` beside what it is to find."""

    word: Signal

    def __init__(self, *, mantissa_bits: int) -> None:
        self._mantissa_bits = mantissa_bits
        super().__init__({"word": In(VALUE_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._mantissa_bits
        m.submodules.normalizer = normalizer = Normalizer(mantissa_bits=bits)
        m.d.comb += normalizer.i.eq(self.word)
        word = delay(m, self.word, normalizer.latency, "word")
        started = delay(m, Const(1), normalizer.latency, "started")
        with m.If(started):
            m.d.comb += Assert(normalizer.present == word.any(), "there is none, or one")
        for place in range(VALUE_BITS):
            leading = Cat(Const(0, bits), word)[place : place + bits]
            with m.If(started & (word[place:] == 1)):
                m.d.comb += [
                    Assert(normalizer.place == place, f"it is at {place}"),
                    Assert(normalizer.mantissa == leading, f"other bits below {place}"),
                ]
        return m


def _product(lns: Lns) -> Proof:
    depth = LogFormat(ArrayArithmetic(lns)).multiplier_latency + 2
    return Proof(
        name=f"log_product_{lns.integer_bits}_{lns.fraction_bits}",
        component=lambda: LogProduct(lns=lns),
        depth=depth,
        bounded=True,
    )


PROOFS = (
    *map(_product, (Lns(2, 2), Lns(3, 2), Lns(3, 4))),
    Proof(
        name="highest_one",
        component=lambda: PlaceOfHighestOne(mantissa_bits=8),
        depth=Normalizer.latency + 1,
        bounded=True,
    ),
)

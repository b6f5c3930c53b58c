"""A logarithmic element's product, and a lane's requantiser: equal to their definitions."""

from amaranth.hdl import Assert, Assume, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.isa import OFFSET_BITS
from slipstick_rtl.numbers.lns.array_arithmetic import GUARD_BITS, ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.log_format import LogFormat
from slipstick_rtl.numbers.lns.log_multiplier import LogMultiplier
from slipstick_rtl.postprocess.log_requantizer import LogRequantizer
from slipstick_rtl.postprocess.multiplier import VALUE_BITS
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


class LogCode(wiring.Component):
    """``LogRequantizer`` beside ``ArrayArithmetic.requantize`` and the pass of codes."""

    value: Signal
    offset: Signal
    coded: Signal

    def __init__(self, *, lns: Lns) -> None:
        self._arithmetic = ArrayArithmetic(lns)
        super().__init__(
            {
                "value": In(signed(VALUE_BITS)),
                "offset": In(signed(OFFSET_BITS)),
                "coded": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = lane = LogRequantizer(arithmetic=self._arithmetic)
        m.d.comb += [
            lane.value.eq(self.value),
            lane.offset.eq(delay(m, self.offset, lane.offset_delay, "offset")),
            lane.coded.eq(delay(m, self.coded, lane.coded_delay, "coded")),
            lane.minimum.eq(-128),
            lane.maximum.eq(127),
        ]
        expected = delay(m, self._define(m), lane.latency, "expected")
        with m.If(delay(m, Const(1), lane.latency, "started")):
            m.d.comb += Assert(lane.result == expected, "another code")
        return m

    def _define(self, m: Module) -> Value:
        arithmetic = self._arithmetic
        bits, places = arithmetic.mantissa_bits, arithmetic.log_places
        magnitude, leading = Signal(VALUE_BITS), Signal(bits + 1)
        place = Signal(range(VALUE_BITS))
        m.d.comb += magnitude.eq(abs(self.value))
        for k in range(VALUE_BITS):
            with m.If(magnitude[k:] == 1):
                shifted = magnitude >> (k - bits) if k >= bits else magnitude << (bits - k)
                m.d.comb += [place.eq(k), leading.eq(shifted)]
        entry = _choose(m, arithmetic.log.tolist(), leading[:bits], "entry")
        code = Signal(signed(OFFSET_BITS + 4))
        rounding = 1 << (GUARD_BITS - 1)
        largest = arithmetic.lns.largest_code
        m.d.comb += code.eq(((place << places) + entry + self.offset + rounding) >> GUARD_BITS)
        limited = Mux(code < 0, 0, Mux(code > largest, largest, code))
        limited = Mux(self.value == 0, 0, Mux(self.value < 0, -limited, limited))
        byte = Mux(self.value > 127, 127, Mux(self.value < -128, -128, self.value))
        result = Signal(signed(8))
        m.d.comb += result.eq(Mux(self.coded, byte, limited))
        return result


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
        name="log_requantizer_2_2",
        component=lambda: LogCode(lns=Lns(2, 2)),
        depth=LogRequantizer.latency + 1,
        bounded=True,
    ),
)

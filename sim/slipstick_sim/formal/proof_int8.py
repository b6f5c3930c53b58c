"""The int8 product for look-up tables: equal to ``*`` for all operands."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.numbers import radix4
from slipstick_rtl.numbers.int8 import Int8

from .registry import Proof

_DIGITS = radix4.LOW_DIGITS + 1


class ProductOfTables(wiring.Component):
    """The recurrence that defines a product, over the digits of the weight.

    A solver takes long to compare the product with ``*`` itself, but no time for this: a weight is
    the sum of its digits; nothing times zero is nothing; and a weight's highest digit adds its
    multiple of the activation to the product without it. By induction over the number of digits
    the product is that of ``*``.
    """

    activation: Signal
    weight: Signal
    code: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "activation": In(Int8.operand),
                "weight": In(Int8.operand),
                "code": In(radix4.CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = radix4.PRODUCT_BITS
        code, activation = self.code, self.activation
        encoded = radix4.encode(self.weight)
        total = sum((_digit(encoded, k) << 2 * k for k in range(_DIGITS)), Const(0))
        product, highest = Signal(bits), _digit(code, _DIGITS - 1)
        m.d.comb += [
            product.eq(radix4.product(activation, code)),
            Assume((highest >= -2) & (highest <= 2), "the highest digit is one that encode gives"),
            Assert(total == self.weight, "a weight is not its digits"),
            Assert((_digit(encoded, _DIGITS - 1) <= 2), "a highest digit that is none"),
            Assert((_digit(encoded, _DIGITS - 1) >= -2), "a highest digit that is none"),
            Assert((code != 0) | (product == 0), "times zero is not zero"),
        ]
        for k in range(_DIGITS):
            above = code[2 * k + 2 :] if k < _DIGITS - 1 else Const(0, 1)
            rest = radix4.product(activation, Cat(code[: 2 * k], Const(0, len(code) - 2 * k)))
            step = Signal(signed(bits + 2), name=f"step_{k}")
            m.d.comb += step.eq(_times(activation, _digit(code, k)) << 2 * k)
            with m.If(~above.any()):
                m.d.comb += Assert(product == (rest + step)[:bits], f"digit {k} is not counted")
        return m


def _digit(code: Any, k: int) -> Value:
    """The number that a digit's code stands for."""
    if k == _DIGITS - 1:
        return code[2 * k :].as_signed()
    bits = code[2 * k : 2 * k + 2]
    # 3 stands for -1
    return Mux(bits == 3, Const(-1, signed(3)), bits)


def _times(activation: Signal, digit: Value) -> Value:
    """Activation times a digit, -2 to 2."""
    multiples = {n: n * activation for n in (1, 2, -1, -2)}
    result: Value = Const(0, signed(11))
    for n, multiple in multiples.items():
        result = Mux(digit == n, multiple, result)
    return result


PROOFS = (Proof(name="int8_lut_product", component=ProductOfTables, depth=1, bounded=True),)

"""The rotator: what it is said to do, and that one way undoes the other."""

from typing import Any

from amaranth.hdl import Assert, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2
from slipstick_rtl.array.rotator import Rotator
from slipstick_rtl.primitives.delay import delay

from .registry import Proof

WIDTH = 4
COUNT = 8


class RotatesAndBack(wiring.Component):
    """Left, then right by the same amount; the first is also held to plain shifts."""

    i: data.View
    amount: Signal

    def __init__(self) -> None:
        words = data.ArrayLayout(WIDTH, COUNT)
        super().__init__({"i": In(words), "amount": In(exact_log2(COUNT))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        latency = Rotator.LATENCY
        left: Any = Rotator(width=WIDTH, count=COUNT)
        right: Any = Rotator(width=WIDTH, count=COUNT, right=True)
        m.submodules += [left, right]
        words = delay(m, Value.cast(self.i), latency, "words")
        amount = delay(m, self.amount, latency, "amount")
        m.d.comb += [
            left.i.eq(self.i),
            left.amount.eq(self.amount),
            right.i.eq(left.o),
            right.amount.eq(amount),
        ]
        turned = Cat(words, words) >> (amount * WIDTH)
        m.d.comb += [
            Assert(Value.cast(left.o) == turned[: WIDTH * COUNT], "left is not as specified"),
            Assert(Value.cast(right.o) == delay(m, words, latency, "before"), "not undone"),
        ]
        return m


PROOFS = (Proof(name="rotator", component=RotatesAndBack, depth=2 * Rotator.LATENCY + 1),)

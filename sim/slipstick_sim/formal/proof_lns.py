"""Logarithmic units: products saturate on the right side, and no result is lost or made up."""

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.adder import LogAdder
from slipstick_rtl.numbers.lns.unit.arithmetic import Operation
from slipstick_rtl.numbers.lns.unit.exponents import ExponentUnit
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit
from slipstick_rtl.numbers.lns.unit.pipeline import request_layout, result_layout
from slipstick_rtl.primitives.delay import delay

from .registry import Proof

WIDE = Lns(6, 9)
NARROW = Lns(3, 2)
"""Format of the adder and the unit, whose tables a solver has to look into."""


class ProductsAreExact(wiring.Component):
    """Products and quotients beside the rule: e of the result is the sum or difference, clamped."""

    a: Signal
    b: Signal
    divide: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(WIDE.bits), "b": In(WIDE.bits), "divide": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = ExponentUnit(WIDE)
        m.d.comb += [
            unit.a.eq(self.a),
            unit.b.eq(self.b),
            unit.operation.eq(Mux(self.divide, Operation.DIVIDE, Operation.MULTIPLY)),
        ]
        a, b = (delay(m, word, unit.latency, name) for word, name in ((self.a, "a"), (self.b, "b")))
        divide = delay(m, self.divide, unit.latency, "divide")
        started = delay(m, Const(1), unit.latency, "started")
        of_a, of_b, result = (word[:-1].as_signed() for word in (a, b, unit.o))
        exact = Signal(signed(WIDE.exponent_bits + 2))
        m.d.comb += exact.eq(Mux(divide, of_a - of_b, of_a + of_b))
        negative = a[-1] ^ (b[-1] & (of_b != WIDE.zero))
        by_zero = divide & (of_b == WIDE.zero)
        zero = (of_a == WIDE.zero) | ((of_b == WIDE.zero) & ~divide)
        with m.If(started & (zero | (~by_zero & (exact < WIDE.smallest)))):
            m.d.comb += Assert(unit.o == Cat(Const(0, WIDE.exponent_bits - 1), Const(1, 2)), "no 0")
        with m.Elif(started & (by_zero | (exact > WIDE.largest))):
            m.d.comb += Assert((result == WIDE.largest) & (unit.o[-1] == negative), "not saturated")
        with m.Elif(started):
            m.d.comb += Assert((result == exact) & (unit.o[-1] == negative), "not the product")
        return m


class SumsCommute(wiring.Component):
    """a + b is b + a, a + 0 is a, and a sum of like signs is no smaller than either operand."""

    a: Signal
    b: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(NARROW.bits), "b": In(NARROW.bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.forth = forth = LogAdder(NARROW)
        m.submodules.back = back = LogAdder(NARROW)
        m.d.comb += [
            forth.a.eq(self.a),
            forth.b.eq(self.b),
            back.a.eq(self.b),
            back.b.eq(self.a),
        ]
        late = forth.latency
        a, b = (delay(m, word, late, name) for word, name in ((self.a, "a"), (self.b, "b")))
        started = delay(m, Const(1), late, "started")
        of_a, of_b, total = (word[:-1].as_signed() for word in (a, b, forth.o))
        with m.If(started):
            m.d.comb += [
                Assert(forth.o == back.o, "the order matters"),
                Assert((total != NARROW.zero) | ~forth.o[-1], "a zero with a sign"),
            ]
        with m.If(started & (of_b == NARROW.zero) & (of_a != NARROW.zero)):
            m.d.comb += Assert(forth.o == a, "0 changes a number")
        with m.If(started & (a[-1] == b[-1])):
            m.d.comb += Assert((total >= of_a) & (total >= of_b), "a sum below its operands")
        return m


class LosesNothing(wiring.Component):
    """Counts requests without results; ``owed`` and ``level`` are the queue's own counts."""

    i: stream.Interface
    o: stream.Interface
    owed: Signal
    level: Signal
    room: Signal

    depth = LnsUnit(lns=NARROW, compensated=False).places

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(request_layout(NARROW))),
                "o": Out(stream.Signature(result_layout(NARROW))),
                "owed": In(range(self.depth + 1)),
                "level": In(range(self.depth + 1)),
                "room": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = LnsUnit(lns=NARROW, compensated=False)
        wiring.connect(m, wiring.flipped(self.i), unit.i)
        wiring.connect(m, unit.o, wiring.flipped(self.o))
        asked, answered = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        counted = Signal(range(self.depth + 2))
        under_way = Signal(unit.pipeline_latency)
        m.d.sync += [
            counted.eq(counted + asked - answered),
            under_way.eq(under_way << 1 | asked),
        ]
        waiting = sum(under_way[k] for k in range(len(under_way)))
        m.d.comb += [
            Assert(counted <= self.depth, "more results owed than there are places"),
            Assert(counted == self.owed, "it has lost count"),
            Assert(counted == self.level + waiting, "a result is lost, or made up"),
            Assert(self.room | ~under_way[-1], "the queue is written when full"),
            Assert(self.o.valid | (self.level <= 1), "a result is held back"),
            Assert(~self.o.valid | (self.level != 0), "a result from nowhere"),
        ]
        return m


PROOFS = (
    Proof(
        name="lns_products",
        component=ProductsAreExact,
        depth=ExponentUnit.latency + 1,
        bounded=True,
    ),
    Proof(
        name="lns_sums",
        component=SumsCommute,
        depth=LogAdder(NARROW).latency + 1,
        bounded=True,
    ),
    Proof(
        name="lns_unit_loses_nothing",
        component=LosesNothing,
        depth=LosesNothing.depth,
        probes={
            "owed": "unit.queue.owed",
            "level": "unit.queue.queue.level",
            "room": "unit.queue.queue.w_rdy",
        },
    ),
)

"""Computes with logarithms without a Gaussian logarithm: products, quotients, roots, order."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..formats import Lns
from .arithmetic import LnsArithmetic, Operation
from .words import Parts, finish


class ExponentUnit(wiring.Component):
    """Multiply, divide, square root and compare, one a cycle, never stalling.

    Members
    -------
    operation : In
        One of these four.
    a, b : In
        Words.
    o : Out
        The result's word, ``latency`` cycles later, as :class:`.arithmetic.LnsArithmetic` has it.
    """

    operation: Signal
    a: Signal
    b: Signal
    o: Signal

    latency = 2
    """Cycles: the sum of logarithms, its clamp."""

    def __init__(self, lns: Lns) -> None:
        self._lns = lns
        word = lns.bits
        super().__init__({"operation": In(Operation), "a": In(word), "b": In(word), "o": Out(word)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Parts.of(self.a), Parts.of(self.b)
        one = LnsArithmetic(self._lns).one
        total = Signal(signed(self._lns.exponent_bits + 2), reset_less=True)
        negative, zero = Signal(reset_less=True), Signal(reset_less=True)
        no_a, no_b = ~a.magnitude.any(), ~b.magnitude.any()
        # in the order of the numbers, as integers
        of_a, of_b = (
            Cat(x.magnitude ^ x.negative.replicate(len(x.magnitude)), x.negative).as_signed()
            for x in (a, b)
        )
        exponent = (a.magnitude - one).as_signed()
        m.d.sync += negative.eq(a.negative ^ b.negative)
        with m.Switch(self.operation):
            with m.Case(Operation.MULTIPLY):
                m.d.sync += [total.eq(a.magnitude + b.magnitude - one), zero.eq(no_a | no_b)]
            with m.Case(Operation.DIVIDE):
                quotient = a.magnitude - b.magnitude + one
                m.d.sync += [
                    total.eq(Mux(no_b, self._lns.largest_code, quotient)),
                    zero.eq(no_a),
                ]
            with m.Case(Operation.SQUARE_ROOT):
                # a half is rounded to even
                m.d.sync += [
                    total.eq(((exponent + exponent[1]) >> 1) + one),
                    zero.eq(no_a | a.negative),
                    negative.eq(0),
                ]
            with m.Default():
                m.d.sync += [total.eq(one), zero.eq(of_a == of_b), negative.eq(of_a < of_b)]
        m.d.comb += self.o.eq(finish(m, self._lns, total, negative, zero, "result"))
        return m

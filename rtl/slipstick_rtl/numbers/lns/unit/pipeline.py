"""Every operation of logarithmic numbers behind one another in a pipeline that never stalls."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ....primitives.delay_memory import long_delay
from ..formats import Lns
from .adder import LogAdder
from .arithmetic import Operation
from .exponents import ExponentUnit
from .words import negated


def request_layout(lns: Lns) -> data.StructLayout:
    """An operation and the words of its operands; those that it has not are ignored."""
    return data.StructLayout({"operation": Operation, "a": lns.bits, "b": lns.bits, "c": lns.bits})


def result_layout(lns: Lns) -> data.StructLayout:
    """The words of a result and, for compensated additions, of what it owes; 0's otherwise."""
    return data.StructLayout({"value": lns.bits, "rest": lns.bits})


class LnsPipeline(wiring.Component):
    """Takes an operation a cycle, any after any; all have the same latency.

    A compensated addition is a chain of four adders, y = b + c; t = a + y; r = t - a; y - r. The
    first of them does the plain additions and subtractions as well; its results, and those of the
    operations that need no adder, wait for the end of the chain in delay lines.

    Parameters
    ----------
    lns : Lns
        Of at most 14 fraction bits.
    compensated : bool
        With COMPENSATED_ADD. Without, a quarter of the adders and of the latency, and that
        operation gives b + c.

    Members
    -------
    i : In(request_layout(lns))
    o : Out(result_layout(lns))
        ``latency`` cycles later.
    """

    i: data.View
    o: data.View

    def __init__(self, lns: Lns, *, compensated: bool = True) -> None:
        self._lns, self._compensated = lns, compensated
        self._adders = [LogAdder(lns) for _ in range(4 if compensated else 1)]
        super().__init__({"i": In(request_layout(lns)), "o": Out(result_layout(lns))})

    @property
    def latency(self) -> int:
        """Cycles: those of the adders."""
        return sum(adder.latency for adder in self._adders)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = self._adders[0]
        m.submodules.exponents = exponents = ExponentUnit(self._lns)
        operation = Signal(Operation)
        chained = operation == Operation.COMPENSATED_ADD
        m.d.comb += [
            operation.eq(self.i.operation),
            first.a.eq(Mux(chained, self.i.c, self.i.a)),
            first.b.eq(negated(self.i.b, operation == Operation.SUBTRACT)),
            exponents.operation.eq(operation),
            exponents.a.eq(self.i.a),
            exponents.b.eq(self.i.b),
        ]
        added = long_delay(m, operation >= Operation.ADD, first.latency, "added")
        other = long_delay(m, exponents.o, first.latency - exponents.latency, "other")
        value = Mux(added, first.o, other)
        if not self._compensated:
            m.d.comb += [self.o.value.eq(value), self.o.rest.eq(self._zero)]
            return m
        chained = long_delay(m, chained, first.latency, "chained")
        total = long_delay(m, self.i.a, first.latency, "total")
        self._chain(m, value, chained, total)
        return m

    @property
    def _zero(self) -> int:
        """The word of zero."""
        return int(self._lns.to_word(False, self._lns.zero))

    def _chain(self, m: Module, y: Value, chained: Value, total: Value) -> None:
        """The three other additions: ``y`` is the first one's result, or the only result."""
        names = ("second", "third", "last")
        for name, adder in zip(names, self._adders[1:], strict=True):
            m.submodules[name] = adder
        second, third, last = self._adders[1:]
        step = second.latency
        m.d.comb += [second.a.eq(total), second.b.eq(y)]
        m.d.comb += [
            third.a.eq(second.o),
            third.b.eq(negated(long_delay(m, total, step, "late_total"))),
        ]
        y_then = long_delay(m, y, step, "y_then")
        y_later = long_delay(m, y_then, step, "y_later")
        m.d.comb += [last.a.eq(y_later), last.b.eq(negated(third.o))]
        chained_then = long_delay(m, chained, step, "chained_then")
        value = Mux(chained_then, second.o, y_then)
        with m.If(long_delay(m, chained_then, 2 * step, "chained_last")):
            m.d.comb += self.o.rest.eq(last.o)
        with m.Else():
            m.d.comb += self.o.rest.eq(self._zero)
        m.d.comb += self.o.value.eq(long_delay(m, value, 2 * step, "value"))

"""Logarithmic units that are asked for every second operand in gateware, for exhaustive benches."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import Operation
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit

NARROW_BITS, FEW_LANES, MANY_LANES = 8, 2, 16
STEPS = 16
"""Cycles of a group."""


def sweep_layout(lns: Lns) -> data.StructLayout:
    """Returns the layout of a request: the operation and operand a of a whole sweep."""
    return data.StructLayout({"operation": Operation, "a": lns.bits})


def lanes_of(lns: Lns) -> int:
    """Units: so many that neither building nor running them takes long."""
    return FEW_LANES if lns.bits <= NARROW_BITS else MANY_LANES


def group_size(lns: Lns) -> int:
    """Results that leave together: no more than there are words."""
    return lanes_of(lns) * STEPS


class LnsSweep(wiring.Component):
    """For each request the units' results for every word b, from 0 up, one from each unit a cycle.

    Square roots, which have one operand, are those of every b.

    A test that waits for groups of results is woken once for each; one that sent requests and
    looked for results every cycle would take minutes for a format of 10 bits.

    Members
    -------
    i : In(stream.Signature(sweep_layout(lns)))
    o : Out
        The results for as many words b as a group has, the first in the lowest bits.
    complete : Out
        Rises when ``o`` is complete; it is until the next rise.
    """

    i: stream.Interface
    o: Signal
    complete: Signal

    def __init__(self, *, lns: Lns) -> None:
        self._lns = lns
        self._units = [LnsUnit(lns=lns, compensated=False) for _ in range(lanes_of(lns))]
        super().__init__(
            {
                "i": In(stream.Signature(sweep_layout(lns))),
                "o": Out(group_size(lns) * lns.bits),
                "complete": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = len(self._units)
        high, count = Signal(range((1 << self._lns.bits) // lanes)), Signal(range(STEPS))
        first = self._units[0]
        rooted = self.i.payload.operation == Operation.SQUARE_ROOT
        for lane, unit in enumerate(self._units):
            m.submodules[f"unit_{lane}"] = unit
            word = Cat(Const(lane, range(lanes)), high)
            m.d.comb += [
                unit.i.payload.operation.eq(self.i.payload.operation),
                unit.i.payload.a.eq(Mux(rooted, word, self.i.payload.a)),
                unit.i.payload.b.eq(word),
                unit.i.valid.eq(self.i.valid),
                unit.o.ready.eq(1),
            ]
        # the units are alike: the first one's handshake is that of all
        results = Cat(unit.o.payload.value for unit in self._units)
        m.d.comb += self.i.ready.eq(first.i.ready & high.all())
        with m.If(first.i.valid & first.i.ready):
            m.d.sync += high.eq(high + 1)
        with m.If(first.o.valid):
            collected = Signal.like(self.o)
            joined = Cat(collected[len(results) :], results)
            m.d.sync += [count.eq(count + 1), collected.eq(joined)]
            with m.If(count == STEPS - 1):
                m.d.sync += [self.o.eq(joined), self.complete.eq(1)]
            with m.If(count == STEPS // 2 - 1):
                m.d.sync += self.complete.eq(0)
        return m

"""Columns and arrays whose sums are logarithmic too: each element has an adder of its own."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers.lns.formats import Lns
from ..numbers.lns.unit.adder import LogAdder
from ..numbers.lns.unit.arithmetic import Operation
from ..numbers.lns.unit.exponents import ExponentUnit
from ..primitives.delay import delay
from ..primitives.delay_memory import long_delay


class LogSumElement(wiring.Component):
    """Multiplies words by its stationary weight and adds the products to the sums passing.

    ``LnsArithmetic.add(partial_sum, LnsArithmetic.multiply(activation, weight))``, a sum a cycle.
    Words run to the right, sums down, as in :class:`...array.processing_element.ProcessingElement`.

    Parameters
    ----------
    lns : Lns
        Of at most 14 fraction bits.
    first : bool
        Of a column: there is nothing to add to, and so no adder; ``partial_sums`` is not looked at.

    Members
    -------
    activations, swap : In
        A word from the left; the next one is the first to use the captured weight.
    weight, capture : In
        A word, and whether it is this element's; captured before the cycle of ``swap``.
    partial_sums : In
        Word of the sum above, ``ExponentUnit.latency`` cycles later than ``activations``.
    activations_out, swap_out : Out
        The same one cycle later.
    partial_sums_out : Out
        ``latency`` cycles later than ``activations``.
    """

    activations: Signal
    swap: Signal
    weight: Signal
    capture: Signal
    partial_sums: Signal
    activations_out: Signal
    swap_out: Signal
    partial_sums_out: Signal

    def __init__(self, lns: Lns, *, first: bool) -> None:
        self._lns = lns
        self._adder = None if first else LogAdder(lns)
        word = lns.bits
        super().__init__(
            {
                "activations": In(word),
                "swap": In(1),
                "weight": In(word),
                "capture": In(1),
                "partial_sums": In(word),
                "activations_out": Out(word),
                "swap_out": Out(1),
                "partial_sums_out": Out(word),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles: the product, and its sum if there is one."""
        return ExponentUnit.latency + (0 if self._adder is None else self._adder.latency)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.product = product = ExponentUnit(self._lns)
        captured, active = (
            Signal(self._lns.bits, name=name, reset_less=True) for name in ("captured", "active")
        )
        with m.If(self.capture):
            m.d.sync += captured.eq(self.weight)
        with m.If(self.swap):
            m.d.sync += active.eq(captured)
        m.d.comb += [
            product.operation.eq(Operation.MULTIPLY),
            product.a.eq(self.activations),
            product.b.eq(active),
            self.activations_out.eq(delay(m, self.activations, 1, "activations", reset_less=True)),
            self.swap_out.eq(delay(m, self.swap, 1, "swap", reset_less=True)),
        ]
        if self._adder is None:
            m.d.comb += self.partial_sums_out.eq(product.o)
            return m
        m.submodules.adder = adder = self._adder
        m.d.comb += [
            adder.a.eq(self.partial_sums),
            adder.b.eq(product.o),
            self.partial_sums_out.eq(adder.o),
        ]
        return m


class LogSumArray(wiring.Component):
    """R x C elements with logarithmic sums, added from the first row to the last: a vector a cycle.

    An adder's latency only lengthens the skew: activations wait in delay lines until the sum of the
    rows above comes, and so does the swap. Weights are captured where they come to, so that a tile
    must not be loaded before the last row's swap of the one before.

    Parameters
    ----------
    lns : Lns
        Of at most 14 fraction bits.
    rows, columns : int

    Members
    -------
    activations : In
        [R] words, all rows in the same cycle.
    swap : In
        A cycle before the first activations that use the weights loaded.
    weights, row, load : In
        [C] words, the row whose weights they are, and whether there are any. The last row's come at
        least two cycles before the swap.
    sums : Out
        [C] words; column j's are ``latency`` + j cycles later than their activations.
    """

    activations: data.View
    swap: Signal
    weights: data.View
    row: Signal
    load: Signal
    sums: data.View

    def __init__(self, lns: Lns, *, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._elements = [
            [LogSumElement(lns, first=row == 0) for _ in range(columns)] for row in range(rows)
        ]
        super().__init__(
            {
                "activations": In(data.ArrayLayout(lns.bits, rows)),
                "swap": In(1),
                "weights": In(data.ArrayLayout(lns.bits, columns)),
                "row": In(range(rows)),
                "load": In(1),
                "sums": Out(data.ArrayLayout(lns.bits, columns)),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from the activations to column 0's sum."""
        return self._row_delay(self._rows - 1) + self._elements[-1][0].latency

    def _row_delay(self, row: int) -> int:
        """Cycles that a row waits for the sum of those above."""
        return sum(self._elements[above][0].latency for above in range(row)) - (
            row * ExponentUnit.latency
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        above: list[Any] = [0] * self._columns
        swap: Any = self.swap
        for i, row in enumerate(self._elements):
            wait = self._row_delay(i)
            activation: Any = long_delay(m, self.activations[i], wait, f"skew_{i}")
            step = wait - self._row_delay(max(0, i - 1))
            swap = swapped = long_delay(m, swap, step, f"swap_{i}")
            for j, element in enumerate(row):
                m.submodules[f"element_{i}_{j}"] = element
                m.d.comb += [
                    element.activations.eq(activation),
                    element.swap.eq(swapped),
                    element.partial_sums.eq(above[j]),
                ]
                activation, swapped = element.activations_out, element.swap_out
            above = [element.partial_sums_out for element in row]
        self._load(m)
        m.d.comb += [self.sums[j].eq(above[j]) for j in range(self._columns)]
        return m

    def _load(self, m: Module) -> None:
        """Weights to their rows, a column a cycle, and from left to right."""
        captures: Any = [
            delay(m, self.load & (self.row == i), 1, f"capture_{i}") for i in range(self._rows)
        ]
        for j in range(self._columns):
            weight = long_delay(m, self.weights[j], 1 + j, f"weight_{j}")
            for row, capture in zip(self._elements, captures, strict=True):
                m.d.comb += [row[j].weight.eq(weight), row[j].capture.eq(capture)]
            captures = [delay(m, way, 1, f"capture_{i}_{j}") for i, way in enumerate(captures)]

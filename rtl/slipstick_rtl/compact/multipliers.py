"""The compact engine's multipliers: R x C products, summed by columns."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import DIGITS, Configuration
from ..primitives.dual_multiplier import DualMultiplier

SUM_LATENCY = 2
"""Cycles from operands to the sums of their products: the operands' register, the sums'."""

DIGIT_BITS = 8


class Multipliers(wiring.Component):
    """One operand a row, one factor an element, one sum a column, a cycle.

    The factors are a row of weights; or, to requantise, the digits of a multiplier, each row's one
    column further than the row's above: then column c sums all products of digit places that add up
    to c.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    operands : In
        [R] bytes.
    load : In(R)
        The rows that take factors, for the operands of this cycle and those after it.
    weights : In(8 x C)
    diagonal : In
        Row r takes only byte r of ``weights``, and zeros.
    digits : In
        [DIGITS] digits of a multiplier, lowest first, instead of the weights, if ``use_digits``.
    use_digits : In
    sums : Out
        [C] sums, SUM_LATENCY cycles after their operands.
    """

    operands: data.View
    load: Signal
    weights: Signal
    diagonal: Signal
    digits: data.View
    use_digits: Signal
    sums: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._rows, self._columns = rows, columns = configuration.rows, configuration.columns
        total = signed(16 + ceil_log2(rows))
        super().__init__(
            {
                "operands": In(data.ArrayLayout(8, rows)),
                "load": In(rows),
                "weights": In(8 * columns),
                "diagonal": In(1),
                "digits": In(data.ArrayLayout(DIGIT_BITS, DIGITS)),
                "use_digits": In(1),
                "sums": Out(data.ArrayLayout(total, columns)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        products: list[list] = [[] for _ in range(self._columns)]
        for r in range(self._rows):
            for pair in range(self._columns // 2):
                m.submodules[f"block_{r}_{pair}"] = block = DualMultiplier()
                m.d.comb += [
                    block.a.eq(self.operands[r].replicate(2)),
                    block.load.eq(self.load[r]),
                ]
                for half in range(2):
                    column = 2 * pair + half
                    m.d.comb += block.b.word_select(half, 8).eq(self._factor(r, column))
                    products[column].append(block.p.word_select(half, 16).as_signed())
        for column, terms in enumerate(products):
            total = Signal.like(self.sums[column], name=f"sum_{column}", reset_less=True)
            m.d.sync += total.eq(sum(terms[1:], terms[0]))
            m.d.comb += self.sums[column].eq(total)
        return m

    def _factor(self, row: int, column: int) -> Value:
        weight: Value = self.weights.word_select(column, 8)
        if row != column:
            weight = Mux(self.diagonal, 0, weight)
        # in columns beyond the last digit's any factor will do: no one looks at their sums
        if column >= self._rows + DIGITS - 1:
            return weight
        place = column - row
        digit = self.digits[place] if 0 <= place < DIGITS else Const(0, DIGIT_BITS)
        return Mux(self.use_digits, digit, weight)

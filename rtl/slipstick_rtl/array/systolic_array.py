"""The array: R x C processing elements, weight-stationary, P pixels sharing each weight."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..numbers.int8 import column_formats, number_format
from ..primitives.delay import delay
from .correction_sum import CorrectionSum
from .processing_element import ProcessingElement, element_latency


def array_latency(configuration: Configuration) -> int:
    """Cycles from the activations to column 0's sums: one a row to skew them, then one element."""
    element = number_format(configuration.number_format, configuration.multiplier)
    return configuration.rows - 1 + element_latency(element)


class SystolicArray(wiring.Component):
    """Sums of R products for C output channels and P pixels, one vector a cycle.

    A tile of weights arrives as R words in consecutive cycles, row 0 first, the first accompanied
    by ``capture``. ``swap`` comes one cycle before the first activations that use it, at least R
    cycles after ``capture``; the next ``capture`` may come with those activations or later. So a
    new tile of weights can be taken every R + 1 cycles while the array works.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    activations : In
        [P][R] operands, all rows of one reduction tile in the same cycle.
    swap : In
    weights : In
        [C] operands, one row of the tile.
    capture : In
    partial_sums : Out
        [P][C] sums; column j is ``latency + j`` cycles later than its activations.
    """

    activations: data.View
    swap: Signal
    weights: data.View
    capture: Signal
    partial_sums: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._formats = column_formats(c)
        operand, total = self._formats[0].operand, self._formats[0].partial_sum(c.rows)
        super().__init__(
            {
                "activations": In(data.ArrayLayout(data.ArrayLayout(operand, c.rows), c.pixels)),
                "swap": In(1),
                "weights": In(data.ArrayLayout(operand, c.columns)),
                "capture": In(1),
                "partial_sums": Out(data.ArrayLayout(data.ArrayLayout(total, c.columns), c.pixels)),
            }
        )
        self._elements = [
            [
                ProcessingElement(number_format=column, pixels=c.pixels, rows=c.rows)
                for column in self._formats
            ]
            for _ in range(c.rows)
        ]

    @property
    def latency(self) -> int:
        """Cycles from the activations to column 0's sums."""
        return array_latency(self._configuration)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pixels = range(self._configuration.pixels)
        swap, capture = self.swap, self.capture
        last = delay(m, capture, self._configuration.rows - 1, "last", reset_less=True)
        above: list[ProcessingElement] | None = None
        for i, row in enumerate(self._elements):
            operands = [
                delay(m, self.activations[p][i], i, f"skew_{i}_{p}", reset_less=True)
                for p in pixels
            ]
            left: ProcessingElement | None = None
            for j, element in enumerate(row):
                m.submodules[f"element_{i}_{j}"] = element
                if left is None:
                    m.d.comb += [element.swap.eq(swap), element.capture.eq(capture)]
                    m.d.comb += [element.activations[p].eq(operands[p]) for p in pixels]
                else:
                    m.d.comb += [
                        element.swap.eq(left.swap_out),
                        element.capture.eq(left.capture_out),
                        element.activations.eq(left.activations_out),
                    ]
                if above is None:
                    self._feed(m, j, element, delay(m, last, j, f"last_{j}", reset_less=True))
                else:
                    m.d.comb += [
                        element.weight.eq(above[j].weight_out),
                        element.partial_sums.eq(above[j].partial_sums_out),
                    ]
                left = element
            # weights move down a row a cycle and each row's come a cycle later: two in all
            swap = delay(m, swap, 1, f"swap_{i}", reset_less=True)
            capture = delay(m, capture, 2, f"capture_{i}", reset_less=True)
            above = row
        for j, element in enumerate(self._elements[-1]):
            m.d.comb += [self.partial_sums[p][j].eq(element.partial_sums_out[p]) for p in pixels]
        return m

    def _feed(self, m: Module, j: int, first: ProcessingElement, last: Signal) -> None:
        """Column j's weights into its first element, and what its sums start from."""
        c, column = self._configuration, self._formats[j]
        stored = column.store(self.weights[j])
        m.d.comb += first.weight.eq(delay(m, stored, j, f"weight_{j}", reset_less=True))
        if column.correction_bits:
            m.submodules[f"correction_{j}"] = total = CorrectionSum(
                number_format=column, rows=c.rows
            )
            m.d.comb += [
                total.weight.eq(first.weight),
                total.capture.eq(first.capture),
                total.last.eq(last),
                total.swap.eq(first.swap),
                *(first.partial_sums[p].eq(total.o) for p in range(c.pixels)),
            ]

"""Two elements of a column that share their registers of sums: for standard cells."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers.number_format import NumberFormat
from ..primitives.delay import delay

_NAMES = ("upper", "lower")
"""Names of a pair's rows. Numbered blocks would be mapped to cells apart: an activation's register
could not serve the multiplier as well."""


@dataclass(frozen=True)
class PairRow:
    """One row of a pair, with the members that a :class:`.ProcessingElement` has for a row."""

    pair: "RowPair"
    activations: data.View
    weight: Value
    capture: Value
    activations_out: data.View
    swap: Signal
    swap_out: Signal


class RowPair(wiring.Component):
    """Multiplies P activations of each of two rows by its weight; both products join the sum.

    A column of R elements has R registers of sums; of pairs it has half as many. The two additions
    take a cycle together, or one each (``pair_cycles`` of the number format).

    Parameters
    ----------
    number_format : NumberFormat
        Shapes, and the multiplier; made for pairs.
    pixels : int
        P.
    rows_above : int
        Whose products ``partial_sums`` holds; with 0 they are not looked at.

    Members
    -------
    activations, weight, capture : In
        [2] of what a :class:`.ProcessingElement` has; both rows' in the same cycles.
    swap : In
    partial_sums : In
        P sums of the elements above, ``element_latency - 1`` cycles later than ``activations``.
    activations_out, swap_out : Out
        The same one cycle later, for the neighbour.
    partial_sums_out : Out
        ``element_latency`` cycles later than ``activations``.
    """

    activations: data.View
    weight: data.View
    capture: Signal
    swap: Signal
    partial_sums: data.View
    activations_out: data.View
    swap_out: Signal
    partial_sums_out: data.View

    def __init__(self, *, number_format: NumberFormat, pixels: int, rows_above: int) -> None:
        self._format = number_format
        self._pixels, self._rows_above = pixels, rows_above
        operands = data.ArrayLayout(data.ArrayLayout(number_format.activation, pixels), 2)
        above = number_format.partial_sum(max(1, rows_above))
        below = number_format.partial_sum(rows_above + 2)
        super().__init__(
            {
                "activations": In(operands),
                "weight": In(data.ArrayLayout(number_format.stored_weight, 2)),
                "capture": In(2),
                "swap": In(1),
                "partial_sums": In(data.ArrayLayout(above, pixels)),
                "activations_out": Out(operands),
                "swap_out": Out(1),
                "partial_sums_out": Out(data.ArrayLayout(below, pixels)),
            }
        )

    def row(self, index: int) -> PairRow:
        """Returns the members of the upper row, 0, or of the lower one, 1."""
        return PairRow(
            pair=self,
            activations=self.activations[index],
            weight=self.weight[index],
            capture=self.capture[index],
            activations_out=self.activations_out[index],
            swap=self.swap,
            swap_out=self.swap_out,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.swap_out.eq(delay(m, self.swap, 1, "swap", reset_less=True))
        multipliers = []
        for index in range(2):
            multiplier = self._format.multiplier(pixels=self._pixels)
            m.submodules[f"{_NAMES[index]}_multiplier"] = multiplier
            captured = Signal(self._format.stored_weight, name=f"captured_{index}", reset_less=True)
            with m.If(self.capture[index]):
                m.d.sync += captured.eq(self.weight[index])
            activations = self.activations[index]
            m.d.comb += [
                multiplier.activations.eq(activations),
                multiplier.weight.eq(captured),
                multiplier.swap.eq(self.swap),
                multiplier.swap_late.eq(self.swap_out),
                self.activations_out[index].eq(
                    delay(m, activations, 1, f"activations_{index}", reset_less=True)
                ),
            ]
            multipliers.append(multiplier)
        for pixel in range(self._pixels):
            total = Signal(
                self.partial_sums_out[pixel].shape(), name=f"total_{pixel}", reset_less=True
            )
            both = Signal(self._format.partial_sum(2), name=f"both_{pixel}")
            m.d.comb += both.eq(sum(self._product(one, pixel, len(both)) for one in multipliers))
            late = delay(m, both, self._format.pair_cycles, f"both_{pixel}", reset_less=True)
            above = self.partial_sums[pixel] if self._rows_above else 0
            m.d.sync += total.eq(late + above)
            m.d.comb += self.partial_sums_out[pixel].eq(total)
        return m

    def _product(self, multiplier: object, pixel: int, width: int) -> Value:
        """A product, whole."""
        product, ones = self._format.addend(multiplier, pixel)
        number = product.bits(width)
        return number if ones is None else number + (ones[0] & ones[1])

"""Two elements of a column that share their registers of sums: for standard cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers.number_format import Addend, NumberFormat
from ..primitives.delay import delay
from ..primitives.resting import where

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

    A column of R elements has R registers of sums; of pairs it has half as many. With
    ``pair_cycles`` of the number format the products' sum has a register of its own. Without it
    three numbers are added in a cycle.

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
        [2] of what a :class:`.ProcessingElement` has; both rows' in the same cycles, so that the
        upper one's ``capture`` is that of both.
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
            with m.If(self.capture[0]):
                m.d.sync += captured.eq(self.weight[index])
            m.d.comb += [
                multiplier.activations.eq(self.activations[index]),
                multiplier.weight.eq(captured),
                multiplier.swap.eq(self.swap),
                multiplier.swap_late.eq(self.swap_out),
            ]
            for pixel in range(self._pixels):
                self._pass_on(m, index, pixel)
            multipliers.append(multiplier)
        for pixel in range(self._pixels):
            total = Signal(
                self.partial_sums_out[pixel].shape(), name=f"total_{pixel}", reset_less=True
            )
            products = [self._format.addend(one, pixel) for one in multipliers]
            above = self.partial_sums[pixel] if self._rows_above else Const(0, 1)
            sum_of = self._sum_of_two if self._format.pair_cycles else self._sum_of_three
            m.d.sync += total.eq(sum_of(m, products, above, pixel))
            m.d.comb += self.partial_sums_out[pixel].eq(total)
        return m

    def _pass_on(self, m: Module, index: int, pixel: int) -> None:
        """An activation to the neighbour; bits without a meaning stay as they were."""
        given = Value.cast(self.activations[index][pixel])
        passed = Signal(len(given), name=f"activation_{index}_{pixel}", reset_less=True)
        present = given[-1] if self._format.marks_zeros else None
        with where(m, present):
            m.d.sync += passed.eq(given)
        if present is not None:
            m.d.sync += passed[-1].eq(present)
        m.d.comb += Value.cast(self.activations_out[index][pixel]).eq(passed)

    def _sum_of_two(self, m: Module, products: Sequence[Addend], above: Value, pixel: int) -> Value:
        """The sum above and, from a register, that of both products."""
        both = Signal(self._format.partial_sum(2), name=f"both_{pixel}")
        numbers = (product.bits(len(both)) + _one(ones) for product, ones in products)
        m.d.comb += both.eq(sum(numbers))
        late = delay(m, both, self._format.pair_cycles, f"both_{pixel}", reset_less=True)
        return late + above

    def _sum_of_three(
        self, m: Module, products: Sequence[Addend], above: Value, pixel: int
    ) -> Value:
        """The sum above and both products: a full adder per bit, then carries run once."""
        shape = self.partial_sums_out[pixel].shape()
        sums, carries = (Signal(shape, name=f"{name}_{pixel}") for name in ("sums", "carries"))
        extended = Signal(shape, name=f"above_{pixel}")
        (first, first_ones), (second, second_ones) = products
        a, b = first.bits(len(sums)), second.bits(len(sums))
        m.d.comb += [
            extended.eq(above),
            sums.eq(a ^ b ^ extended),
            # what a product lacks takes the lowest carry's place
            carries.eq(Cat(_one(first_ones), (a & b) | ((a ^ b) & extended))),
        ]
        return sums + carries + _one(second_ones)


def _one(ones: tuple[Value, Value] | None) -> Value:
    """Returns what a product lacks: 1 if both bits are."""
    return Const(0, 1) if ones is None else ones[0] & ones[1]

"""Shares what number formats with logarithmic weights and exact sums have in common."""

from typing import Any

from amaranth.hdl import Const, Shape, Value, signed, unsigned

from ...primitives.carry_sum import Operand
from .coded_multiplier import decode, element_code
from .formats import Lns


class CodedWeights:
    """Ordered codes as weights, exact integers in the columns.

    Members are those of :class:`~slipstick_rtl.numbers.number_format.NumberFormat` that do not
    depend on activations.

    Parameters
    ----------
    lns : Lns
        Of the weights.
    largest_product : int
    """

    operand = signed(8)
    encode_cycles = 1
    swap_cycles = 0
    pair_cycles = 0
    marks_zeros = False

    def __init__(self, lns: Lns, largest_product: int) -> None:
        self._lns, self._largest_product = lns, largest_product

    @property
    def stored_weight(self) -> Shape:
        """Magnitude of the code, sign, and whether it is not zero."""
        return unsigned(element_code(self._lns).size)

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products."""
        return signed((rows * self._largest_product).bit_length() + 1)

    def store(self, weight: Any) -> Value:
        """An ordered code's magnitude, sign, and whether it is not zero, combinational."""
        return decode(self._lns, weight)

    def addend(self, multiplier: Any, pixel: int) -> tuple[Operand, tuple[Value, Value] | None]:
        """A product, for the sum down the column: the sum's own gates mask and negate it."""
        product = multiplier.products[pixel]
        operand = Operand(product.bits, mask=product.mask, flip=product.negative)
        return operand, (product.negative, Const(1, 1))

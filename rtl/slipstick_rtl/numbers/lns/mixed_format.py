"""Logarithmic weights with linear activations, as an array would see them: elements to be measured.

No core has them: the price list says what they cost.
"""

from typing import Any

from amaranth.hdl import Const, Shape, Value, signed, unsigned

from ...primitives.carry_sum import Operand
from .log_multiplier import decode, element_code
from .mixed_arithmetic import LARGEST_ACTIVATION, MixedArithmetic
from .mixed_multiplier import (
    MixedMultiplier,
    activation_code,
    encode_activation,
    multiplier_latency,
)


class MixedFormat:
    """Ordered codes as weights, int8 as activations, exact integers in the columns.

    Members are those of :class:`..number_format.NumberFormat`.

    Parameters
    ----------
    arithmetic : MixedArithmetic
    """

    operand = signed(8)
    encode_cycles = 1
    swap_cycles = 0

    def __init__(self, arithmetic: MixedArithmetic) -> None:
        self._arithmetic = arithmetic
        largest = arithmetic.multiply(-LARGEST_ACTIVATION, -arithmetic.lns.largest_code)
        self._largest_product = int(largest)

    @property
    def activation(self) -> Shape:
        """Magnitude, multiples and sign of an int8."""
        return unsigned(activation_code(self._arithmetic).size)

    @property
    def stored_weight(self) -> Shape:
        """Magnitude of the code, sign, and whether it is not zero."""
        return unsigned(element_code(self._arithmetic.lns).size)

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        return multiplier_latency(self._arithmetic)

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products."""
        return signed((rows * self._largest_product).bit_length() + 1)

    def encode(self, activation: Any) -> Value:
        """An int8's magnitude, its multiples and its sign, combinational."""
        return encode_activation(self._arithmetic, activation)

    def store(self, weight: Any) -> Value:
        """An ordered code's magnitude, sign, and whether it is not zero, combinational."""
        return decode(self._arithmetic.lns, weight)

    def multiplier(self, *, pixels: int) -> MixedMultiplier:
        """What multiplies P activations a cycle by an element's weight."""
        return MixedMultiplier(arithmetic=self._arithmetic, pixels=pixels)

    def addend(
        self, multiplier: MixedMultiplier, pixel: int
    ) -> tuple[Operand, tuple[Value, Value] | None]:
        """A product, for the sum down the column: the sum's own gates mask and negate it."""
        product = multiplier.products[pixel]
        operand = Operand(product.bits, mask=product.mask, flip=product.negative)
        return operand, (product.negative, Const(1, 1))

"""The logarithmic number formats as the array sees them."""

from typing import Any

from amaranth.hdl import Const, Shape, Value, signed, unsigned

from ...primitives.carry_sum import Operand
from .array_arithmetic import ArrayArithmetic
from .log_multiplier import LogMultiplier, decode, element_code, multiplier_latency


class LogFormat:
    """Ordered codes in memory, sums of logarithms in the elements, exact integers in the columns.

    Members are those of :class:`..number_format.NumberFormat`.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    """

    operand = signed(8)
    encode_cycles = 1
    swap_cycles = 0

    def __init__(self, arithmetic: ArrayArithmetic) -> None:
        self._arithmetic = arithmetic
        largest = arithmetic.lns.largest_code
        self._largest_product = int(arithmetic.multiply(largest, largest))

    @property
    def activation(self) -> Shape:
        """Magnitude of the code, sign, and whether it is not zero."""
        return unsigned(element_code(self._arithmetic.lns).size)

    @property
    def stored_weight(self) -> Shape:
        """The same."""
        return self.activation

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        return multiplier_latency(self._arithmetic)

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products."""
        return signed((rows * self._largest_product).bit_length() + 1)

    def encode(self, activation: Any) -> Value:
        """An ordered code's magnitude, sign, and whether it is not zero, combinational."""
        return decode(self._arithmetic.lns, activation)

    def store(self, weight: Any) -> Value:
        """The same."""
        return decode(self._arithmetic.lns, weight)

    def multiplier(self, *, pixels: int) -> LogMultiplier:
        """What multiplies P activations a cycle by an element's weight."""
        return LogMultiplier(arithmetic=self._arithmetic, pixels=pixels)

    def addend(
        self, multiplier: LogMultiplier, pixel: int
    ) -> tuple[Operand, tuple[Value, Value] | None]:
        """A product, for the sum down the column: the sum's own gates mask and negate it."""
        product = multiplier.products[pixel]
        operand = Operand(product.bits, mask=product.mask, flip=product.negative)
        return operand, (product.negative, Const(1, 1))

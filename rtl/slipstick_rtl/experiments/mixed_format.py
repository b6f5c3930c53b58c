"""Logarithmic weights with linear activations, as an array would see them: elements to be measured.

No core has them: the price list says what they cost.
"""

from typing import Any

from amaranth.hdl import Shape, Value, unsigned

from ..numbers.lns.coded_weights import CodedWeights
from .mixed_arithmetic import LARGEST_ACTIVATION, MixedArithmetic
from .mixed_multiplier import (
    MixedMultiplier,
    activation_code,
    encode_activation,
    multiplier_latency,
)


class MixedFormat(CodedWeights):
    """Ordered codes as weights, int8 as activations, exact integers in the columns.

    Members are those of :class:`~slipstick_rtl.numbers.number_format.NumberFormat`.

    Parameters
    ----------
    arithmetic : MixedArithmetic
    """

    def __init__(self, arithmetic: MixedArithmetic) -> None:
        self._arithmetic = arithmetic
        largest = arithmetic.multiply(-LARGEST_ACTIVATION, -arithmetic.lns.largest_code)
        super().__init__(arithmetic.lns, int(largest))

    @property
    def activation(self) -> Shape:
        """Magnitude, multiples and sign of an int8."""
        return unsigned(activation_code(self._arithmetic).size)

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        return multiplier_latency(self._arithmetic)

    def encode(self, activation: Any) -> Value:
        """An int8's magnitude, its multiples and its sign, combinational."""
        return encode_activation(self._arithmetic, activation)

    def multiplier(self, *, pixels: int) -> MixedMultiplier:
        """Creates a component that multiplies P activations a cycle by an element's weight."""
        return MixedMultiplier(arithmetic=self._arithmetic, pixels=pixels)

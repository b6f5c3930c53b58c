"""The logarithmic number formats as the array sees them."""

from typing import Any

from amaranth.hdl import Shape, Value

from .array_arithmetic import ArrayArithmetic
from .coded_weights import CodedWeights
from .log_multiplier import LogMultiplier, multiplier_latency


class LogFormat(CodedWeights):
    """Ordered codes in memory, sums of logarithms in the elements, exact integers in the columns.

    Members are those of :class:`~slipstick_rtl.numbers.number_format.NumberFormat`.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    paired : bool
        Two elements share each register of sums, and their multipliers have one only.
    """

    marks_zeros = True

    def __init__(self, arithmetic: ArrayArithmetic, *, paired: bool = False) -> None:
        self._arithmetic, self._paired = arithmetic, paired
        largest = arithmetic.lns.largest_code
        super().__init__(arithmetic.lns, int(arithmetic.multiply(largest, largest)))

    @property
    def activation(self) -> Shape:
        """Magnitude of the code, sign, and whether it is not zero."""
        return self.stored_weight

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        return multiplier_latency(self._arithmetic, shifts_registered=not self._paired)

    def encode(self, activation: Any) -> Value:
        """An ordered code's magnitude, sign, and whether it is not zero, combinational."""
        return self.store(activation)

    def multiplier(self, *, pixels: int) -> LogMultiplier:
        """Creates a component that multiplies P activations a cycle by an element's weight."""
        return LogMultiplier(
            arithmetic=self._arithmetic, pixels=pixels, shifts_registered=not self._paired
        )

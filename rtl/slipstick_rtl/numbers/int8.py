"""The linear int8 number format: what a processing element multiplies and adds."""

from typing import Any

from amaranth.hdl import Shape, Value, signed

from ..primitives.carry_sum import Operand
from . import radix4
from .element_multipliers import (
    OPERAND,
    BlockMultiplier,
    CellMultiplier,
    DigitMultiplier,
    Int8Multiplier,
    PairedCellMultiplier,
)

_BACK_ENDS: dict[str, type[Int8Multiplier]] = {
    "plain": BlockMultiplier,
    "lut": DigitMultiplier,
    "cells": CellMultiplier,
    "paired_cells": PairedCellMultiplier,
}


class Int8:
    """Signed 8-bit codes, exact products, exact sums.

    Members are those of :class:`.number_format.NumberFormat`.

    Parameters
    ----------
    multiplier : str
        "plain": ``*``, in DSP blocks if there are any. "lut": digits of base four, for chips whose
        DSP blocks are needed elsewhere; :mod:`.radix4`. "cells": ``*`` with the registers that
        standard cells want. "paired_cells": the same where two elements' products are added, and
        that sum has a register.
    """

    operand = activation = OPERAND
    """Shape of activations and weights as they lie in memory, and of activations in the array."""

    encode_cycles = 0
    marks_zeros = False

    def __init__(self, *, multiplier: str = "plain") -> None:
        if multiplier not in _BACK_ENDS:
            raise ValueError(f"multiplier must be one of {tuple(_BACK_ENDS)}, not {multiplier!r}")
        self._kind = _BACK_ENDS[multiplier]
        self._digits = self._kind is DigitMultiplier

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        return self._kind.latency

    @property
    def pair_cycles(self) -> int:
        """Cycles for the sum of two elements' products before it joins the column's."""
        return int(self._kind is PairedCellMultiplier)

    @property
    def stored_weight(self) -> Shape:
        """Shape of a weight inside an element."""
        return Shape.cast(self._kind.stored_weight)

    @property
    def swap_cycles(self) -> int:
        """Cycles by which a captured weight is taken later than the swap says."""
        return self._kind.swap_cycles

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products, of magnitude 2^14 at most each."""
        return signed((rows << 14).bit_length() + 1)

    def encode(self, activation: Any) -> Value:
        """Activations run through the array as they are."""
        return Value.cast(activation)

    def store(self, weight: Any) -> Value:
        """The form in which elements hold a weight, combinational."""
        return radix4.encode(weight) if self._digits else Value.cast(weight)

    def multiplier(self, *, pixels: int) -> Int8Multiplier:
        """Creates a component that multiplies P activations a cycle by an element's weight."""
        return self._kind(pixels=pixels)

    def addend(
        self, multiplier: Int8Multiplier, pixel: int
    ) -> tuple[Operand, tuple[Value, Value] | None]:
        """A product, for the sum down the column; one of digits may lack a one."""
        ones = (multiplier.ones[0], multiplier.ones[1]) if self._digits else None
        return Operand(Value.cast(multiplier.products[pixel]).as_signed()), ones

    def product(self, activation: Any, weight: Any) -> Value:
        """The product of one activation and one weight, combinational: what ``multiplier`` makes
        in several cycles."""
        stored = self.store(weight)
        return (
            radix4.product(activation, stored) if self._digits else activation * stored.as_signed()
        )

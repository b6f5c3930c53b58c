"""The linear int8 number format: what a processing element multiplies and adds."""

from typing import Any

from amaranth.hdl import Const, Shape, Value, signed, unsigned
from amaranth.utils import ceil_log2

from ..config import Configuration
from . import radix4
from .element_multipliers import (
    MULTIPLIER_LATENCY,
    OPERAND,
    PRODUCT,
    BlockMultiplier,
    DigitMultiplier,
    ElementMultiplier,
)


class Int8:
    """Signed 8-bit codes, exact products, exact sums.

    The array asks its number format for shapes, product and sum, and never branches on its kind;
    another format offers the same members. A weight is stored in an element in the form that
    ``store`` gives it; what ``multiplier``'s products then leave out, because it depends on the
    weight alone, is ``correction``, and the array adds it once for each column.

    Parameters
    ----------
    multiplier : str
        "plain": ``*``, in DSP blocks if there are any. "lut": digits of base four, for chips whose
        DSP blocks are needed elsewhere; :mod:`.radix4`.
    """

    operand = OPERAND
    """Shape of activations and weights as they lie in memory."""

    multiplier_latency = MULTIPLIER_LATENCY
    """Cycles from activations to an element's products."""

    product_shape = PRODUCT
    """Of a multiplier's product."""

    def __init__(self, *, multiplier: str = "plain") -> None:
        if multiplier not in ("plain", "lut"):
            raise ValueError(f"multiplier must be one of ('plain', 'lut'), not {multiplier!r}")
        self._digits = multiplier == "lut"

    @property
    def stored_weight(self) -> Shape:
        """Shape of a weight inside an element."""
        return unsigned(radix4.CODE_BITS) if self._digits else self.operand

    @property
    def correction_bits(self) -> int:
        """Width of one weight's ``correction``, 0 if there is nothing to correct."""
        return radix4.CORRECTION_BITS if self._digits else 0

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products, of magnitude 2^14 at most each."""
        return signed(16 + ceil_log2(rows))

    def store(self, weight: Any) -> Value:
        """The form in which elements hold a weight, combinational."""
        return radix4.encode(weight) if self._digits else Value.cast(weight)

    def multiplier(self, *, pixels: int) -> ElementMultiplier:
        """What multiplies P activations a cycle by an element's weight."""
        kind = DigitMultiplier if self._digits else BlockMultiplier
        return kind(pixels=pixels)

    def correction(self, stored: Any) -> Value:
        """What the multiplier's products lack, unsigned: it depends on the weight alone."""
        return radix4.correction(stored) if self._digits else Const(0, 0)

    def product(self, activation: Any, weight: Any) -> Value:
        """The product of one activation and one weight, combinational: what ``multiplier`` makes
        in several cycles, with its correction."""
        stored = self.store(weight)
        if not self._digits:
            return activation * stored.as_signed()
        exact = radix4.product(activation, stored) + self.correction(stored)
        return exact[: self.product_shape.width].as_signed()


def number_format(name: str, multiplier: str = "plain") -> Int8:
    """The number format that a configuration names, with its multiplier's back-end."""
    formats = {"int8": Int8}
    return formats[name](multiplier=multiplier)


def column_formats(configuration: Configuration) -> list[Int8]:
    """The number format of each of C columns: the first ``dsp_columns`` have the plain product."""
    c = configuration
    plain = c.columns if c.multiplier == "plain" else c.dsp_columns
    multipliers = ["plain" if j < plain else "lut" for j in range(c.columns)]
    return [number_format(c.number_format, multiplier) for multiplier in multipliers]

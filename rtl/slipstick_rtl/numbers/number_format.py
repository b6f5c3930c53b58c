"""Defines what the array asks of a number format, and finds the one of a configuration."""

from collections.abc import Callable
from typing import Any, Protocol

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data

from ..config import Configuration
from ..number_formats import INT8_FAMILY, LNS_FAMILY
from ..primitives.carry_sum import Operand
from .int8 import Int8
from .lns.log_format import LogFormat

Addend = tuple[Operand, tuple[Value, Value] | None]
"""A product as the second operand of ``carry_sum``, and its ``ones``."""


class ElementMultiplier(Protocol):
    """A component that multiplies P activations a cycle by an element's weight.

    Its products are the number format's to read; they are there ``multiplier_latency`` cycles after
    the activations.

    Members
    -------
    activations : In
        P of the format's ``activation``.
    weight : In
        The captured weight; it stays for two cycles from ``swap`` on.
    swap, swap_late : In
        The weight is to work from the next cycle's activations on; the same, a cycle later.
    """

    activations: data.View
    weight: Signal
    swap: Signal
    swap_late: Signal

    def elaborate(self, platform: object) -> Module:
        """Its gateware."""
        ...


class NumberFormat(Protocol):
    """Shapes, product and sum of a number format; the array never branches on its kind."""

    @property
    def operand(self) -> Shape:
        """Returns the shape of activations and weights as they lie in memory."""
        ...

    @property
    def activation(self) -> Shape:
        """Returns the shape of an activation inside the array, as ``encode`` makes it."""
        ...

    @property
    def marks_zeros(self) -> bool:
        """The last bit of an activation inside the array is 0 for zero; others say nothing then."""
        ...

    @property
    def encode_cycles(self) -> int:
        """Cycles that activations take more to come to the array's rows."""
        ...

    @property
    def stored_weight(self) -> Shape:
        """Returns the shape of a weight inside an element, as ``store`` makes it."""
        ...

    @property
    def multiplier_latency(self) -> int:
        """Cycles from activations to an element's products."""
        ...

    @property
    def pair_cycles(self) -> int:
        """Cycles for the sum of two elements' products before it joins the column's; 0 as well if
        each element has sums of its own."""
        ...

    @property
    def swap_cycles(self) -> int:
        """Cycles by which a captured weight is taken later than the swap says."""
        ...

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products."""
        ...

    def encode(self, activation: Any) -> Value:
        """The form in which activations run through the array, combinational."""
        ...

    def store(self, weight: Any) -> Value:
        """The form in which elements hold a weight, combinational."""
        ...

    def multiplier(self, *, pixels: int) -> ElementMultiplier:
        """Creates a component that multiplies P activations by a weight."""
        ...

    def addend(self, multiplier: Any, pixel: int) -> Addend:
        """The product of one of its pixels, for the sum down the column."""
        ...


def number_format(configuration: Configuration) -> NumberFormat:
    """The number format that a configuration names, with its multiplier's back-end."""
    return _FORMATS[configuration.format.family](configuration)


def _lns_format(configuration: Configuration) -> NumberFormat:
    assert configuration.logarithmic is not None
    return LogFormat(configuration.logarithmic, paired=configuration.rows_together > 1)


def _int8(configuration: Configuration) -> NumberFormat:
    if configuration.rows_together > 1:
        return Int8(multiplier="paired_cells")
    return Int8(multiplier="cells" if configuration.silicon else configuration.multiplier)


_FORMATS: dict[str, Callable[[Configuration], NumberFormat]] = {
    INT8_FAMILY: _int8,
    LNS_FAMILY: _lns_format,
}

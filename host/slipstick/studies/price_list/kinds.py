"""Lists the kinds of elements in the price list, and the gateware to measure them by.

A kind is a number format and how products are summed: *linear* is the core's array, products in
logarithms and exact sums of integers; *log* has logarithmic sums, an adder in each element. With
linear activations only weights are logarithmic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.lns.array_arithmetic import LARGEST_INTEGER_BITS, LARGEST_OPERAND_BITS
from slipstick_rtl.numbers.lns.formats import Lns

from ..lns.accuracy import LOG_SUM_FORMATS, MIXED_FORMATS

if TYPE_CHECKING:
    from slipstick_rtl.experiments.pieces import Piece
    from slipstick_rtl.numbers.number_format import NumberFormat

INT8_BITS = 8

SIDE = 16
"""Rows and columns of the list's arrays."""

_INT8: Mapping[str, Mapping[str, Any]] = {
    "int8 packed": {"packed": True},
    "int8 plain": {},
    "int8 lut": {"multiplier": "lut"},
}
"""The back-ends of int8's multipliers: two products a DSP block, one, none."""

LINEAR, LOG = "linear", "log"


@dataclass(frozen=True)
class Kind:
    """A row of the list.

    Parameters
    ----------
    name : str
        Of int8's back-end, or of the format, with " log sums" behind it if its sums are so, or
        "int8 x " before it if its activations are int8.
    bits : int
        Of a weight.
    sums : str
        LINEAR or LOG.
    lns : Lns or None
        None for int8.
    linear_activations : bool
        They are int8, whatever the weights.
    """

    name: str
    bits: int
    sums: str = LINEAR
    lns: Lns | None = None
    linear_activations: bool = False

    @property
    def log_format(self) -> Lns:
        """The format; TypeError for int8."""
        if self.lns is None:
            raise TypeError(f"{self.name} has no logarithmic format")
        return self.lns

    @property
    def in_core(self) -> bool:
        """Tells whether a configuration of the core has it."""
        lns = self.lns
        return lns is None or (
            self.sums == LINEAR
            and not self.linear_activations
            and lns.bits <= LARGEST_OPERAND_BITS
            and lns.integer_bits <= LARGEST_INTEGER_BITS
        )

    @property
    def core_target(self) -> str | None:
        """The target whose core is built of it in standard cells; None if there is none."""
        if self.lns is not None:
            return f"sim-{self.lns.name}" if self.in_core else None
        # multipliers of DSP blocks and of look-up tables are an FPGA's
        return None if _INT8[self.name] else f"1x{SIDE}x{SIDE}"

    @property
    def is_packed(self) -> bool:
        """Two elements share a DSP block."""
        return self.lns is None and "packed" in _INT8[self.name]

    def element_format(self, rows: int) -> "NumberFormat":
        """Returns the format of linear sums' elements in an array of so many rows."""
        from slipstick_rtl.experiments.mixed_arithmetic import MixedArithmetic
        from slipstick_rtl.experiments.mixed_format import MixedFormat
        from slipstick_rtl.experiments.wide_arithmetic import WideArithmetic
        from slipstick_rtl.numbers.lns.log_format import LogFormat
        from slipstick_rtl.numbers.number_format import number_format

        if self.linear_activations:
            return MixedFormat(MixedArithmetic(self.log_format))
        if not self.in_core:
            return LogFormat(WideArithmetic(self.log_format))
        return number_format(self._configuration(rows, rows))

    def column(self, rows: int) -> "Piece":
        """A column of elements, or for packed int8 a pair of columns."""
        from slipstick_rtl.experiments import pieces

        if self.sums == LOG:
            return pieces.log_sum_column(self.log_format, rows)
        if self.is_packed:
            return pieces.packed_column(self._configuration(rows, rows))
        return pieces.exact_sum_column(self.element_format(rows), rows)

    def array(self, side: int) -> "Piece":
        """An array of so many rows and columns.

        Raises
        ------
        ValueError
            If there is none: linear sums of a format that no configuration has.
        """
        from slipstick_rtl.experiments import pieces

        if self.sums == LOG:
            return pieces.log_sum_array(self.log_format, rows=side, columns=side)
        if not self.in_core:
            raise ValueError(f"no core has an array of {self.name}")
        return pieces.exact_sum_array(self._configuration(side, side))

    def _configuration(self, rows: int, columns: int) -> Configuration:
        """The core's array of this shape and kind."""
        if self.lns is not None:
            fields: dict[str, Any] = {"number_format": self.lns.name}
        else:
            fields = dict(_INT8[self.name])
        packed = rows if fields.pop("packed", False) else 0
        base = Configuration(rows=rows, columns=columns, lanes=4, packed_rows=packed)
        return replace(base, **fields)


def _linear(name: str) -> Kind:
    lns = Lns.parse(name)
    return Kind(name, lns.bits, LINEAR, lns)


def _log(name: str) -> Kind:
    lns = Lns.parse(name)
    return Kind(f"{name} log sums", lns.bits, LOG, lns)


def _mixed(name: str) -> Kind:
    lns = Lns.parse(name)
    return Kind(f"int8 x {name}", lns.bits, LINEAR, lns, linear_activations=True)


_CORE_FORMATS = (
    *("lns1+2+2", "lns1+3+1"),
    *("lns1+3+2", "lns1+4+1", "lns1+2+3"),
    *("lns1+3+3", "lns1+4+2", "lns1+2+4"),
    *("lns1+3+4", "lns1+4+3", "lns1+2+5"),
)
_WIDE_FORMATS = ("lns1+4+4", "lns1+4+5", "lns1+4+6")
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        *(Kind(name, INT8_BITS) for name in _INT8),
        *map(_linear, (*_CORE_FORMATS, *_WIDE_FORMATS)),
        *map(_mixed, MIXED_FORMATS),
        *map(_log, LOG_SUM_FORMATS),
    )
}
"""All kinds by name, in the list's order."""

"""The blocks that can be laid out, by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..asic.implementation import LACKING, component_rtlil
from ..errors import TargetError

FORMATS: Mapping[str, str] = {
    "int8": "int8",
    "lns5": "lns1+2+2",
    "lns6": "lns1+3+2",
    "lns7": "lns1+3+3",
    "lns8": "lns1+3+4",
}
"""Number formats of the array, by the names of blocks."""

UNITS: Mapping[str, str] = {"lns-unit": "lns1+3+4", "lns-unit-15": "lns1+6+8"}
"""Formats of the LNS unit."""

KINDS = (
    "lns-unit, lns-unit-15, element-FORMAT, column-FORMAT-ROWS, array-ROWSxCOLUMNS-FORMAT,"
    f" lane-FORMAT, with FORMAT of {', '.join(FORMATS)}"
)

_SIMPLE = re.compile(r"(element|lane)-(\w+)")
_COLUMN = re.compile(r"column-([a-z]\w*)(?:-(\d{1,3}))?")
_ARRAY = re.compile(r"array-(\d{1,3})x(\d{1,3})-(\w+)")

ROWS = 4
"""Rows of a column by default, and of the array whose second row an element is in."""


@dataclass(frozen=True)
class Block:
    """A block of the gateware.

    Parameters
    ----------
    name : str
        As the command takes it.
    number_format : str
    kind : str
        ``unit``, ``element``, ``column``, ``array``, or ``lane`` of the post-processor.
    shape : mapping
        Rows and columns of an array or a column.
    """

    name: str
    number_format: str
    kind: str
    shape: Mapping[str, int] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """The block as an identifier, which its files are called by."""
        return self.name.replace("-", "_")

    def rtlil(self, top: str) -> str:
        """Returns the gateware as RTLIL; TargetError if there is none of this shape."""
        try:
            return _MAKERS[self.kind](self, top)
        except ImportError as error:
            raise TargetError(LACKING.format(error.name)) from None
        except ValueError as error:
            raise TargetError(f"block {self.name}: {error}") from None


def find_block(name: str) -> Block:
    """Returns the block of a name.

    Raises
    ------
    TargetError
        If there is none; the message says how blocks are called.
    """
    if name in UNITS:
        return Block(name, UNITS[name], "unit")
    if (match := _SIMPLE.fullmatch(name)) and match[2] in FORMATS:
        return Block(name, FORMATS[match[2]], match[1])
    if (match := _COLUMN.fullmatch(name)) and match[1] in FORMATS:
        rows = int(match[2] or ROWS)
        return Block(name, FORMATS[match[1]], "column", {"rows": rows, "columns": 1})
    if (match := _ARRAY.fullmatch(name)) and match[3] in FORMATS:
        shape = {"rows": int(match[1]), "columns": int(match[2])}
        return Block(name, FORMATS[match[3]], "array", shape)
    raise TargetError(f"block must be one of {KINDS}; not {name!r}")


def element_format(number_format: str) -> Any:
    """Returns the number format of an array's element, by its name."""
    from slipstick_rtl.config import Configuration
    from slipstick_rtl.numbers import number_format as formats

    configuration = Configuration(rows=ROWS, columns=ROWS, lanes=ROWS, number_format=number_format)
    return formats.number_format(configuration)


def _unit(block: Block, top: str) -> str:
    from slipstick_rtl.numbers.lns.formats import Lns
    from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit

    return component_rtlil(LnsUnit(lns=Lns.parse(block.number_format), compensated=False), top)


def _element(block: Block, top: str) -> str:
    from slipstick_sim.netlist.gate_parts import element

    return component_rtlil(element(block.number_format), top)


def _lane(block: Block, top: str) -> str:
    from slipstick_sim.benches import bench_log_requantizer, bench_requantizer

    if block.number_format == "int8":
        return component_rtlil(bench_requantizer.component(), top)
    return component_rtlil(bench_log_requantizer.make(block.number_format), top)


def _column(block: Block, top: str) -> str:
    from slipstick_rtl import rtlil
    from slipstick_rtl.experiments.pieces import exact_sum_column

    piece = exact_sum_column(element_format(block.number_format), block.shape["rows"])
    ports = [*piece.inputs, *piece.outputs]
    return rtlil.convert(piece.gateware, name=top, ports=ports)


def _array(block: Block, top: str) -> str:
    from slipstick_sim.benches.bench_array import make

    return component_rtlil(make(**block.shape, number_format=block.number_format), top)


_MAKERS = {
    "unit": _unit,
    "element": _element,
    "lane": _lane,
    "column": _column,
    "array": _array,
}

"""The pieces that the price list measures: a column of elements, an array, the unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value

from ..array.packed_pair import PackedPair, Unpacker
from ..array.processing_element import ProcessingElement
from ..array.systolic_array import SystolicArray
from ..config import Configuration
from ..numbers.lns.formats import Lns
from ..numbers.lns.unit.lns_unit import LnsUnit
from ..numbers.number_format import NumberFormat, number_format
from .log_sums import LogSumArray, LogSumElement
from .shift_rig import ShiftRig

_CONTROLS = ("swap", "pairs", "depthwise", "half", "block", "kept_rows", "shift", "last")


@dataclass(frozen=True)
class Piece:
    """Gateware with its ports.

    Parameters
    ----------
    gateware : Elaboratable
    inputs, outputs : tuples of Value
    elements : int
        How many are in it.
    """

    gateware: Any
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    elements: int

    def rig(self) -> ShiftRig:
        """The piece between registers."""
        return ShiftRig(piece=self.gateware, inputs=self.inputs, outputs=self.outputs)


def exact_sum_column(element_format: NumberFormat, rows: int) -> Piece:
    """Elements of one column with linear sums, from the first row to the last."""
    column = [
        ProcessingElement(number_format=element_format, pixels=1, rows_above=row)
        for row in range(rows)
    ]
    return _column(column)


def packed_column(configuration: Configuration) -> Piece:
    """Elements of a pair of columns that share DSP blocks, and what takes their sums apart."""
    rows = configuration.rows
    column = [PackedPair(pixels=1, rows_above=row) for row in range(rows)]
    unpacker = Unpacker(number_format=number_format(configuration), rows=rows)
    return _column(column, unpacker)


def log_sum_column(lns: Lns, rows: int) -> Piece:
    """Elements of one column with logarithmic sums."""
    return _column([LogSumElement(lns, first=row == 0) for row in range(rows)])


def _column(column: Sequence[Any], unpacker: Unpacker | None = None) -> Piece:
    """Sums go from each element to the next; all else that one takes and gives is a port."""
    m = Module()
    inputs: list[Value] = []
    outputs: list[Value] = []
    for row, element in enumerate(column):
        m.submodules[f"element_{row}"] = element
        for name in ("activations", "swap", "weight", "capture"):
            value = Value.cast(getattr(element, name))
            inputs.append(port := Signal(len(value), name=f"{name}_{row}"))
            m.d.comb += value.eq(port)
        passed = Cat(Value.cast(element.activations_out), element.swap_out)
        outputs.append(port := Signal(len(passed), name=f"passed_{row}"))
        m.d.comb += port.eq(passed)
        if row:
            above = Value.cast(column[row - 1].partial_sums_out)
            m.d.comb += Value.cast(element.partial_sums).eq(above)
    sums = Value.cast(column[-1].partial_sums_out)
    if unpacker is not None:
        m.submodules.unpacker = unpacker
        m.d.comb += Value.cast(unpacker.i).eq(sums)
        sums = Value.cast(unpacker.o)
    outputs.append(port := Signal(len(sums), name="sums"))
    m.d.comb += port.eq(sums)
    # a pair is two elements
    elements = len(column) * (1 if unpacker is None else 2)
    return Piece(m, tuple(inputs), tuple(outputs), elements)


def exact_sum_array(configuration: Configuration) -> Piece:
    """The core's array."""
    c = configuration
    array = SystolicArray(configuration=c)
    names = (*_CONTROLS, "activations", "weights")
    outputs: list[Value] = []
    for j in range(c.columns):
        sums: list[Any] = [array.partial_sums[p][j] for p in range(c.pixels)]
        if c.takes_pairs:
            sums.append(array.even_sums[0][j])
        outputs.append(Cat(*map(Value.cast, sums)))
    inputs = tuple(Value.cast(getattr(array, name)) for name in names)
    return Piece(array, inputs, tuple(outputs), c.rows * c.columns)


def log_sum_array(lns: Lns, *, rows: int, columns: int) -> Piece:
    """An array with logarithmic sums."""
    array = LogSumArray(lns, rows=rows, columns=columns)
    names = ("activations", "swap", "weights", "row", "load")
    sums = tuple(Value.cast(array.sums[j]) for j in range(columns))
    inputs = tuple(Value.cast(getattr(array, name)) for name in names)
    return Piece(array, inputs, sums, rows * columns)


def unit(lns: Lns, *, compensated: bool) -> Piece:
    """The stream component with every operation."""
    made = LnsUnit(lns=lns, compensated=compensated)
    inputs = (Value.cast(made.i.payload), Value.cast(made.i.valid), Value.cast(made.o.ready))
    outputs = (Value.cast(made.o.payload), Value.cast(made.o.valid), Value.cast(made.i.ready))
    return Piece(made, inputs, outputs, 1)

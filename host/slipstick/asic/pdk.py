"""A process: the cells of its library, by name or by path."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import TargetError
from .functions import Function, parse_function
from .liberty import Group, LibertyError, parse_liberty

NAMED = {"gscl45": ("gscl45nm.lib", 45.0), "osu018": ("osu018_stdcells.lib", 180.0)}
"""Files of ``$SLIPSTICK_DATA/pdk``, and the feature sizes of their processes in nanometres."""

GATE, FLIP_FLOP, LATCH = "gate", "flip-flop", "latch"
CLOCK_GATE = "clock gate"
"""Made of several cells of the library: see :mod:`.clock_gating`."""

_INVERTER = (True, False)
_BASES = {
    "nand": (True, True, True, False),
    "nor": (True, False, False, False),
    "and": (False, False, False, True),
    "or": (False, True, True, True),
}
_KINDS = {"ff": FLIP_FLOP, "ff_bank": FLIP_FLOP, "latch": LATCH, "latch_bank": LATCH}


@dataclass(frozen=True)
class Cell:
    """A standard cell.

    Parameters
    ----------
    name : str
    area : float
        As the library counts: square micrometres, as a rule.
    kind : str
        ``GATE``, ``FLIP_FLOP``, ``LATCH`` or ``CLOCK_GATE``.
    inputs : tuple of str
        Pins, the clock's among them.
    outputs : mapping of Function by pin
        Of inputs, or of the names of the state.
    state : mapping of Function by attribute
        Of a flip-flop ``next_state`` and ``clocked_on``, of a latch ``data_in`` and ``enable``;
        of either ``clear`` and ``preset`` if it has them. Empty for gates.
    state_names : tuple of str
        What outputs call the state and its inverse.
    three_state : bool
        An output can be released.
    pin_loads : mapping of float by pin
        Capacitance of each input pin, in the library's unit.
    both : tuple of str
        What state and inverse become while ``clear`` and ``preset`` hold: ``clear_preset_var1``
        and 2, "X" if the file says nothing.
    """

    name: str
    area: float
    kind: str
    inputs: tuple[str, ...]
    outputs: Mapping[str, Function]
    state: Mapping[str, Function]
    state_names: tuple[str, ...] = ()
    three_state: bool = False
    pin_loads: Mapping[str, float] = field(default_factory=dict)
    both: tuple[str, str] = ("X", "X")

    @property
    def capacitance(self) -> float:
        """Capacitance of an input pin on the average."""
        return sum(self.pin_loads.values()) / max(1, len(self.pin_loads))

    @property
    def clock_pins(self) -> tuple[str, ...]:
        """Pins that a flip-flop, a latch or a clock gate takes its clock from."""
        functions = (self.state.get(name) for name in ("clocked_on", "enable"))
        return tuple(pin for function in functions if function for pin in function.variables)

    @property
    def data_pin(self) -> str | None:
        """Pin whose value a flip-flop or a latch takes; None if that is a function of several."""
        function = self.state.get("next_state") or self.state.get("data_in")
        alone = function is not None and len(function.variables) == 1
        return function.variables[0] if function is not None and alone else None

    @property
    def forces(self) -> tuple[str, ...]:
        """Those of ``clear`` and ``preset`` that the cell has."""
        return tuple(name for name in ("clear", "preset") if name in self.state)

    @property
    def state_pin(self) -> str:
        """The output that shows the state, or else its inverse."""
        for name in self.state_names:
            for pin, function in self.outputs.items():
                if function.text.strip() == name:
                    return pin
        return next(iter(self.outputs))


@dataclass(frozen=True)
class Pdk:
    """Process design kit: the cells and the properties of a process.

    Parameters
    ----------
    name : str
        A key of ``NAMED``, or the stem of the file's name.
    liberty : Path
        The library's file.
    cells : mapping of Cell by name
    voltage : float or None
        The library's nominal one, volts; None if it gives none.
    time_unit : str
        Such as ``1ns``.
    feature_nm : float or None
        The process' feature size, which the model of memories scales with.
    """

    name: str
    liberty: Path
    cells: Mapping[str, Cell]
    voltage: float | None
    time_unit: str
    feature_nm: float | None

    @cached_property
    def flip_flops(self) -> frozenset[str]:
        """Names of the cells that are flip-flops."""
        return frozenset(cell.name for cell in self.cells.values() if cell.kind == FLIP_FLOP)

    @cached_property
    def plain_flip_flop(self) -> Cell:
        """The smallest that takes a pin at the rising edge of its clock, and does nothing else."""
        fitting = [
            cell
            for cell in self.cells.values()
            if _is_plain_flip_flop(cell)
            and cell.state["clocked_on"].table == (False, True)
            and not cell.forces
        ]
        if not fitting:
            raise TargetError(
                f"PDK {self.name} must have a flip-flop without clear and preset for the rising"
                " edge, and has none"
            )
        return min(fitting, key=lambda cell: cell.area)

    @cached_property
    def pin_capacitance(self) -> float:
        """Averages the capacitance of an input pin over the gates, in the library's unit."""
        gates = [cell for cell in self.cells.values() if cell.kind == GATE and cell.inputs]
        return sum(cell.capacitance for cell in gates) / len(gates)

    @cached_property
    def latches(self) -> frozenset[str]:
        """Names of the cells that are latches."""
        return frozenset(cell.name for cell in self.cells.values() if cell.kind == LATCH)


def find_pdk(name: str, *, feature_nm: float | None = None) -> Pdk:
    """The process of a name or of a path to a liberty file.

    Parameters
    ----------
    name : str
        A key of ``NAMED``, or a path.
    feature_nm : float
        Feature size in nanometres, for a path; named processes have their own.

    Raises
    ------
    TargetError
        If there is no such name or file, or the library lacks what every mapping needs: a
        flip-flop, an inverter, and an and, or, nand or nor of two inputs.
    """
    file, feature = NAMED.get(name, (None, feature_nm))
    if feature is not None and not 1 <= feature <= 10_000:
        raise TargetError(f"a feature size must be within 1..10000 nanometres, not {feature:g}")
    path = Path(name) if file is None else _data() / "pdk" / file
    if not path.is_file():
        raise TargetError(
            f"PDK must be one of {', '.join(NAMED)} or the path of a liberty file: {name!r} is none"
            f" of them, and there is no file {path}"
        )
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise TargetError(f"liberty file {path} cannot be read: {error.strerror}") from None
    try:
        return _read(path.stem if file is None else name, path.resolve(), text, feature)
    except LibertyError as error:
        raise LibertyError(f"PDK {name}: {error}") from None


def _data() -> Path:
    folder = os.environ.get("SLIPSTICK_DATA")
    if folder is None:
        raise TargetError(
            "named PDKs need the environment variable SLIPSTICK_DATA: the folder that holds pdk/"
            " with the liberty files"
        )
    return Path(folder)


def _read(name: str, path: Path, text: str, feature_nm: float | None) -> Pdk:
    library = parse_liberty(text)
    cells = {group.name: _cell(group) for group in library.of("cell")}
    _check(cells)
    voltage = library.number("nom_voltage", 0.0) or None
    return Pdk(name, path, cells, voltage, library.text("time_unit", "1ns"), feature_nm)


def _cell(group: Group) -> Cell:
    pins = {pin.name: pin for pin in group.of("pin")}
    states = list(group.of(*_KINDS))
    state_names = tuple(states[0].arguments[:2]) if states else ()
    known = {*pins, *state_names}
    outputs = {
        pin: _function(group.name, pin, about.text("function"), known)
        for pin, about in pins.items()
        if "function" in about.attributes
    }
    wanted = ("next_state", "clocked_on", "data_in", "enable", "clear", "preset")
    state = {
        attribute: _function(group.name, attribute, states[0].text(attribute), known)
        for attribute in wanted
        if states and attribute in states[0].attributes
    }
    inputs = tuple(pin for pin, about in pins.items() if about.text("direction") == "input")
    kind = _KINDS[states[0].kind] if states else GATE
    released = any("three_state" in about.attributes for about in pins.values())
    pin_loads = {pin: pins[pin].number("capacitance", 0.0) for pin in inputs}
    variables = states[0] if states else group
    both = (
        variables.text("clear_preset_var1", "X"),
        variables.text("clear_preset_var2", "X"),
    )
    return Cell(
        group.name,
        group.number("area", 0.0),
        kind,
        inputs,
        outputs,
        state,
        state_names,
        released,
        pin_loads,
        both,
    )


def _function(cell: str, pin: str, text: str, known: set[str]) -> Function:
    try:
        function = parse_function(text)
    except LibertyError as error:
        raise LibertyError(f"{pin} of cell {cell}: {error}") from None
    for name in function.variables:
        if name not in known:
            raise LibertyError(
                f"{pin} of cell {cell}: function {text!r} must name pins of the cell, not {name!r}"
            )
    return function


def _check(cells: Mapping[str, Cell]) -> None:
    """LibertyError unless every design can be mapped to these cells."""
    if not cells:
        raise LibertyError("a library must have cells, and this has none")
    if not any(_is_plain_flip_flop(cell) for cell in cells.values()):
        raise LibertyError(
            "mapping needs a flip-flop that takes a pin at an edge of its clock, and none of the"
            f" library's {len(cells)} cells is one"
        )
    gates = [cell for cell in cells.values() if cell.kind == GATE and not cell.three_state]
    tables = {
        function.table
        for cell in gates
        if len(cell.outputs) == 1
        for function in cell.outputs.values()
        if len(function.variables) <= 2
    }
    if _INVERTER not in tables:
        raise LibertyError("mapping needs an inverter, and none of the library's cells is one")
    if not tables.intersection(_BASES.values()):
        raise LibertyError(
            f"mapping needs a gate of two inputs that is one of {', '.join(_BASES)}, and none of"
            " the library's cells is one"
        )


def _is_plain_flip_flop(cell: Cell) -> bool:
    """It can be used for any register, an inverter at its clock allowed."""
    next_state = cell.state.get("next_state")
    return (
        cell.kind == FLIP_FLOP
        and next_state is not None
        and next_state.table == (False, True)
        and "clocked_on" in cell.state
        and bool(cell.outputs)
    )

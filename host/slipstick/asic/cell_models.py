"""Verilog of standard cells, from what their liberty file says of them; no delays."""

import re
from collections.abc import Iterable, Iterator, Mapping

from .functions import Function
from .liberty import LibertyError
from .pdk import FLIP_FLOP, GATE, Cell, Pdk

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LEVELS = {"L": "1'b0", "H": "1'b1", "X": "1'bx"}
"""Verilog values of a state while it is cleared and preset at once, by liberty's letters."""


def cell_models(pdk: Pdk, names: Iterable[str]) -> str:
    """A module for each of these cells of a library.

    Gates are continuous assignments; states begin undefined.

    Raises
    ------
    LibertyError
        If a cell is unknown, or does what a model cannot.
    """
    return "\n".join(_module(pdk, name) for name in sorted(set(names)))


def instance_text(cell: str, name: str, nets: Mapping[str, str]) -> str:
    """An instance of a cell, with a net at each pin."""
    pins = ", ".join(f".{pin}({net})" for pin, net in nets.items())
    return f"{cell} {name} ({pins});"


def _module(pdk: Pdk, name: str) -> str:
    cell = pdk.cells.get(name)
    if cell is None:
        raise LibertyError(f"PDK {pdk.name} has no cell {name}")
    _check(cell)
    ports = [f"input {pin}" for pin in cell.inputs] + [f"output {pin}" for pin in cell.outputs]
    assignments = [f"assign {pin} = {it.verilog};" for pin, it in cell.outputs.items()]
    state = [] if cell.kind == GATE else list(_state(cell))
    body = "".join(f"    {line}\n" for line in [*state, *assignments])
    return f"module {name} ({', '.join(ports)});\n{body}endmodule\n"


def _check(cell: Cell) -> None:
    if not cell.outputs:
        raise LibertyError(f"cell {cell.name} must have an output with a function to be modelled")
    if cell.three_state:
        raise LibertyError(
            f"cell {cell.name} must drive its output at all times to be modelled, and it releases"
            " it (three_state)"
        )
    for name in (cell.name, *cell.inputs, *cell.outputs, *cell.state_names):
        if not _IDENTIFIER.fullmatch(name):
            raise LibertyError(
                f"cell {cell.name} must have names of letters, digits and underscores to be"
                f" modelled, not {name!r}"
            )


def _state(cell: Cell) -> Iterator[str]:
    """Declaration and process of a flip-flop's or a latch's state and its inverse."""
    if len(cell.state_names) != 2:
        raise LibertyError(f"cell {cell.name} must name its state and its inverse to be modelled")
    is_flip_flop = cell.kind == FLIP_FLOP
    data = _needed(cell, "next_state" if is_flip_flop else "data_in")
    gate = _needed(cell, "clocked_on" if is_flip_flop else "enable")
    assign = "<=" if is_flip_flop else "="
    shown = {name for function in cell.outputs.values() for name in function.variables}
    yield f"reg {', '.join(name for name in cell.state_names if name in shown)};"

    def becomes(*values: str) -> str:
        pairs = zip(cell.state_names, values, strict=True)
        return f"begin {' '.join(f'{n} {assign} {v};' for n, v in pairs if n in shown)} end"

    branches = list[str]()
    forced = cell.forces
    for name in forced:
        yield f"wire {name}_ = {cell.state[name].verilog};"
    if len(forced) == 2:
        branches.append("if (clear_ && preset_) " + becomes(*_both(cell)))
    values = {"clear": ("1'b0", "1'b1"), "preset": ("1'b1", "1'b0")}
    branches += [f"if ({name}_) " + becomes(*values[name]) for name in forced]
    loaded = becomes(data.verilog, f"~{data.verilog}")
    if is_flip_flop:
        yield f"wire clock_ = {gate.verilog};"
        events = " or ".join(f"posedge {name}_" for name in ("clock", *forced))
        branches.append(loaded)
    else:
        events = "*"
        branches.append(f"if ({gate.verilog}) {loaded}")
    yield f"always @({events}) " + " else ".join(branches)


def _needed(cell: Cell, attribute: str) -> Function:
    if attribute not in cell.state:
        raise LibertyError(f"cell {cell.name} must have {attribute} to be modelled")
    return cell.state[attribute]


def _both(cell: Cell) -> tuple[str, str]:
    for level in cell.both:
        if level not in _LEVELS:
            raise LibertyError(
                f"cell {cell.name} must become {', '.join(_LEVELS)} when it is cleared and preset"
                f" at once to be modelled, not {level!r}"
            )
    return _LEVELS[cell.both[0]], _LEVELS[cell.both[1]]

"""Clock gating: registers with a common enable get their clock through a gate.

A register whose enable is a choice before its input takes the energy of its clock pin in every
cycle; behind a gate it takes it in those cycles only in which it takes a value. Few libraries have
a cell for it, so the gate is made of three of the library's: a latch that is transparent while the
clock is low, its inverter, and an AND. The latch keeps the enable still while the clock is high.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import TargetError
from .cell_models import instance_text
from .functions import parse_function
from .loads import first_free_net
from .memories import large_shapes, memories_of
from .pdk import CLOCK_GATE, GATE, LATCH, Cell, Pdk

NAME = "slipstick_clock_gate"
ENABLE, CLOCK, GATED = "enable", "clk", "gated"

LEAST_REGISTERS = 4
"""Behind one gate. It takes as much as one and a half registers."""

MOST_REGISTERS = 32
"""Behind one gate: what its AND can drive."""

BLACK_BOX = f"""(* blackbox *)
module {NAME} (input {ENABLE}, input {CLOCK}, output {GATED});
endmodule
"""

COMMANDS = f"""
dffunmap -srst-only
simplemap
opt_dff -nosdff
simplemap
opt_merge
opt_clean
clockgate -pos {NAME} {ENABLE}:{CLOCK}:{GATED} -min_net_size {LEAST_REGISTERS}
"""
"""Yosys commands that gate clocks. A synchronous reset that does not wait for the enable becomes
a part of it."""

_PROBE = "_clock_enable"

_WORD = re.compile(r"\[(\d+)\]")

_PROBED = """
read_rtlil design.il
hierarchy -top {top}
proc
flatten
memory_collect
memory_map {small}
opt -nodffe -nosdff
opt -nosdff
write_json design.json
"""

_AND, _INVERTER, _PLAIN = (False, False, False, True), (True, False), (False, True)

Design = dict[str, Any]


@dataclass(frozen=True)
class ClockGate:
    """The cells that a gate is made of.

    Parameters
    ----------
    latch : Cell
    inverter : Cell or None
        Of the clock, for a latch that is transparent while its pin is high; None if it is not.
    conjunction : Cell
        The AND.
    """

    latch: Cell
    inverter: Cell | None
    conjunction: Cell

    @property
    def parts(self) -> tuple[Cell, ...]:
        """The cells in a row."""
        return tuple(part for part in (self.latch, self.inverter, self.conjunction) if part)

    @property
    def cell(self) -> Cell:
        """The gate as one cell."""
        gated = parse_function(f"{CLOCK} {ENABLE}")
        return Cell(
            NAME,
            sum(part.area for part in self.parts),
            CLOCK_GATE,
            (ENABLE, CLOCK),
            {GATED: gated},
            {"enable": parse_function(CLOCK)},
        )

    @property
    def verilog(self) -> str:
        """Verilog of the gate's module, made of the library's cells."""
        low = CLOCK if self.inverter is None else "low"
        (enable,), data = self.latch.clock_pins, str(self.latch.data_pin)
        latch = {data: ENABLE, enable: low, self.latch.state_pin: "held"}
        lines = [
            f"module {NAME} (input {ENABLE}, input {CLOCK}, output {GATED});",
            "  wire held, low;",
            f"  {instance_text(self.latch.name, 'gate_latch', latch)}",
            f"  {_instance(self.conjunction, 'gate_and', [CLOCK, 'held'], GATED)}",
        ]
        if self.inverter is not None:
            lines.append(f"  {_instance(self.inverter, 'gate_inverter', [CLOCK], low)}")
        return "\n".join([*lines, "endmodule", ""])


def find_clock_gate(pdk: Pdk) -> ClockGate:
    """Finds the cells of a library that make a gate, the smallest of each kind.

    Raises
    ------
    TargetError
        If the library lacks one of them.
    """
    latches = [cell for cell in pdk.cells.values() if _is_latch(cell)]
    latch = _smallest(latches, "a latch without clear and preset", pdk)
    plain = latch.state["enable"].table == _PLAIN
    inverter = _smallest(_gates(pdk, _INVERTER), "an inverter", pdk) if plain else None
    return ClockGate(latch, inverter, _smallest(_gates(pdk, _AND), "an AND of two", pdk))


def with_clock_gate(pdk: Pdk, gate: ClockGate) -> Pdk:
    """Adds the gate to a process as a cell of its own."""
    return replace(pdk, cells={**pdk.cells, NAME: gate.cell})


def clocks_before(module: Mapping[str, Any]) -> dict[int, int]:
    """Finds the clock before each of a module's gates, by the net behind it."""
    connections = (cell["connections"] for cell in _gates_of(module))
    return {nets[GATED][0]: nets[CLOCK][0] for nets in connections}


def registers_behind(module: Mapping[str, Any], pdk: Pdk) -> dict[int, list[dict[str, Any]]]:
    """Finds the registers behind each of a module's gates, by that net."""
    behind: dict[int, list[dict[str, Any]]] = {net: [] for net in clocks_before(module)}
    for cell in module["cells"].values():
        if cell["type"] in pdk.flip_flops:
            net = _clock_bits(cell, pdk)[0]
            if net in behind:
                behind[net].append(cell)
    return behind


def split_gates(design: Design, modules: Iterable[str], pdk: Pdk) -> None:
    """Gives registers beyond ``MOST_REGISTERS`` of one gate gates of their own.

    Parameters
    ----------
    design : Design
        As Yosys' ``write_json`` writes it; changed in place.
    modules : iterable of str
    pdk : Pdk
    """
    for name in modules:
        _split(design["modules"][name], pdk)


def _split(module: dict[str, Any], pdk: Pdk) -> None:
    gates = {gate["connections"][GATED][0]: gate for gate in _gates_of(module)}
    fresh = first_free_net(module)
    for net, registers in registers_behind(module, pdk).items():
        gate = gates[net]
        for place in range(MOST_REGISTERS, len(registers), MOST_REGISTERS):
            copy = {**gate, "connections": {**gate["connections"], GATED: [fresh]}}
            module["cells"][f"$gate${fresh}"] = copy
            for register in registers[place : place + MOST_REGISTERS]:
                _clock_bits(register, pdk)[0] = fresh
            fresh += 1


def _gates_of(module: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in module["cells"].values() if cell["type"] == NAME]


def _clock_bits(register: dict[str, Any], pdk: Pdk) -> list[int]:
    return register["connections"][pdk.cells[register["type"]].clock_pins[0]]


def with_probes(rtlil: str, top: str) -> str:
    """Gives a gateware a wire for each register's enable, named by ``probe_name``.

    A register that always takes its input has none. Enables are found as a mapping finds them: a
    memory that is not worth a macro is made of registers, and modules that are not marked are
    dissolved, so that a register has all of its names in the module around it.

    Parameters
    ----------
    rtlil : str
    top : str

    Raises
    ------
    ToolError
        If Yosys is missing or fails.
    """
    from slipstick_sim.toolchain import run_full_yosys

    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil, "utf-8")
        large = map(memories_of, large_shapes(rtlil))
        small = " ".join(["t:$mem_v2", *(f"{chosen} %d" for chosen in large)])
        run_full_yosys(_PROBED.format(top=top, small=small), cwd=folder)
        design = json.loads((folder / "design.json").read_text("utf-8"))
        for module in design["modules"].values():
            module["netnames"].update(_probes(module))
        (folder / "design.json").write_text(json.dumps(design), "utf-8")
        run_full_yosys("read_json design.json\nwrite_rtlil probed.il\n", cwd=folder)
        return (folder / "probed.il").read_text("utf-8")


def probe_name(register: str) -> str:
    """Names the wire that shows a register's enable; ``name[3]`` is a memory's word."""
    return _WORD.sub(r"_\1_", register) + _PROBE


def _probes(module: Mapping[str, Any]) -> dict[str, Any]:
    enables = dict[int, int | str]()
    for cell in module["cells"].values():
        if "EN" in cell["connections"] and "Q" in cell["connections"]:
            (enable,) = cell["connections"]["EN"]
            enables.update(dict.fromkeys(cell["connections"]["Q"], enable))
    found = dict[str, Any]()
    for name, net in module["netnames"].items():
        bits = [enables.get(bit, "x") for bit in net["bits"]]
        if not net["hide_name"] and any(bit != "x" for bit in bits):
            found[probe_name(name)] = {"hide_name": 0, "bits": bits, "attributes": {}}
    return found


def _is_latch(cell: Cell) -> bool:
    return (
        cell.kind == LATCH
        and cell.data_pin is not None
        and len(cell.clock_pins) == 1
        and not cell.forces
        and cell.state["data_in"].table == _PLAIN
    )


def _gates(pdk: Pdk, table: tuple[bool, ...]) -> list[Cell]:
    return [
        cell
        for cell in pdk.cells.values()
        if cell.kind == GATE
        and not cell.three_state
        and len(cell.outputs) == 1
        and next(iter(cell.outputs.values())).table == table
    ]


def _smallest(cells: list[Cell], what: str, pdk: Pdk) -> Cell:
    if not cells:
        raise TargetError(f"clock gates need {what}, and PDK {pdk.name} has none")
    return min(cells, key=lambda cell: cell.area)


def _instance(cell: Cell, name: str, inputs: list[str], output: str) -> str:
    (pin,) = cell.outputs
    return instance_text(
        cell.name, name, {**dict(zip(cell.inputs, inputs, strict=True)), pin: output}
    )

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
from .functions import Function, parse_function
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
"""Of Yosys: a synchronous reset that does not wait for the enable becomes a part of it."""

_PROBE = "_clock_enable"

_WORD = re.compile(r"\[(\d+)\]")

_MOST_WORDS = 65
"""A memory of fewer words is taken for registers, as most of them become."""

_PROBED = """
read_rtlil design.il
hierarchy -top {top}
proc
memory_collect
memory_map t:$mem_v2 r:SIZE<{most} %i
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
        """All of them."""
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
            capacitance=self.latch.capacitance,
        )

    @property
    def verilog(self) -> str:
        """Its module, of the library's cells."""
        low = CLOCK if self.inverter is None else "low"
        data, enable = (_variable(self.latch.state[name]) for name in ("data_in", "enable"))
        latch = {data: ENABLE, enable: low, self.latch.state_pin: "held"}
        lines = [
            f"module {NAME} (input {ENABLE}, input {CLOCK}, output {GATED});",
            "  wire held, low;",
            f"  {_joined(self.latch.name, 'gate_latch', latch)}",
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


def with_clock_gate(pdk: Pdk) -> Pdk:
    """The process, with the gate as a cell of its own."""
    cell = find_clock_gate(pdk).cell
    return replace(pdk, cells={**pdk.cells, cell.name: cell})


def split_gates(design: Design, modules: Iterable[str], pdk: Pdk) -> int:
    """Gives registers beyond ``MOST_REGISTERS`` of one gate gates of their own.

    Parameters
    ----------
    design : Design
        As Yosys' ``write_json`` writes it; changed in place.
    modules : iterable of str
    pdk : Pdk

    Returns
    -------
    int
        Gates in these modules.
    """
    return sum(_split(design["modules"][name], pdk) for name in modules)


def _split(module: dict[str, Any], pdk: Pdk) -> int:
    cells = module["cells"]
    gates = {cell["connections"][GATED][0]: cell for cell in cells.values() if cell["type"] == NAME}
    if not gates:
        return 0
    behind: dict[int, list[list[int]]] = {net: [] for net in gates}
    for cell in cells.values():
        if cell["type"] in pdk.flip_flops:
            bits = cell["connections"][clock_pin(pdk.cells[cell["type"]])]
            if bits[0] in behind:
                behind[bits[0]].append(bits)
    fresh = 1 + max(
        bit
        for about in (*module["ports"].values(), *module["netnames"].values())
        for bit in about["bits"]
        if isinstance(bit, int)
    )
    fresh = max([fresh, *(_highest(cell) + 1 for cell in cells.values())])
    for net, clocks in behind.items():
        for place in range(MOST_REGISTERS, len(clocks), MOST_REGISTERS):
            gate = gates[net]
            copy = {**gate, "connections": {**gate["connections"], GATED: [fresh]}}
            cells[f"$gate${fresh}"] = copy
            for bits in clocks[place : place + MOST_REGISTERS]:
                bits[0] = fresh
            fresh += 1
    return sum(cell["type"] == NAME for cell in cells.values())


def _highest(cell: dict[str, Any]) -> int:
    bits = [bit for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)]
    return max(bits, default=0)


def with_probes(rtlil: str, top: str) -> str:
    """A gateware with a wire for each register's enable, by ``probe_name``.

    A register that always takes its input has none. Enables are found as a mapping finds them.

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
        run_full_yosys(_PROBED.format(top=top, most=_MOST_WORDS), cwd=folder)
        design = json.loads((folder / "design.json").read_text("utf-8"))
        for module in design["modules"].values():
            module["netnames"].update(_probes(module))
        (folder / "design.json").write_text(json.dumps(design), "utf-8")
        run_full_yosys("read_json design.json\nwrite_rtlil probed.il\n", cwd=folder)
        return (folder / "probed.il").read_text("utf-8")


def probe_name(register: str) -> str:
    """The wire that shows a simulation a register's enable; a word of a memory is ``name[3]``."""
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


def clock_pin(cell: Cell) -> str:
    """The pin that a flip-flop takes its clock from."""
    return _variable(cell.state["clocked_on"])


def _variable(function: Function) -> str:
    return function.variables[0]


def _is_latch(cell: Cell) -> bool:
    functions = [cell.state.get(name) for name in ("data_in", "enable")]
    return (
        cell.kind == LATCH
        and all(function is not None and len(function.variables) == 1 for function in functions)
        and not {"clear", "preset"} & set(cell.state)
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
    return _joined(cell.name, name, {**dict(zip(cell.inputs, inputs, strict=True)), pin: output})


def _joined(kind: str, name: str, nets: dict[str, str]) -> str:
    pins = ", ".join(f".{pin}({net})" for pin, net in nets.items())
    return f"{kind} {name} ({pins});"

"""Components as ECP5's synthesis leaves them: the netlist of cells that place and route would get.

What Yosys makes of a design, what it merges and turns into other cells, is simulated, with what is
done to the netlist after it.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.ecp5 import netlist as ecp5
from slipstick_rtl.fpga.yosys_script import COMMANDS
from slipstick_rtl.primitives import carry_sum

from .. import toolchain
from . import ecp5_cells

_DESIGN, _NETLIST = "design.il", "netlist.json"

_OPEN = ("OCEA", "OCEB")
"""Ports of block RAMs that may lack."""


def verilog(rtlil: str, top: str) -> str:
    """The component's cells, and their models.

    Raises
    ------
    ToolError
        If there is no Yosys with ECP5's synthesis, or it fails.
    """
    *before, synthesis = COMMANDS["ECP5"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / _DESIGN).write_text(rtlil)
        script = [f"read_rtlil {_DESIGN}", *before, f"{synthesis} -top {top} -json {_NETLIST}"]
        toolchain.run_full_yosys("\n".join(script), cwd=folder)
        netlist = _finished(json.loads((folder / _NETLIST).read_text()), top)
        (folder / _NETLIST).write_text(json.dumps(netlist))
        text = toolchain.run_full_yosys(
            f"read_json {_NETLIST}\nwrite_verilog -noattr -norename\n", cwd=folder
        )
    return text + ecp5_cells.synthesis_models()


def _finished(netlist: dict[str, Any], top: str) -> dict[str, Any]:
    """The top alone, as a build has it."""
    ecp5.release_carries(netlist)
    carry_sum.release_starts(netlist)
    ecp5.absorb_output_registers(netlist)
    module = netlist["modules"][top]
    cells = {name: cell for name, cell in module["cells"].items() if cell["type"][0] != "$"}
    for cell in cells.values():
        _connect(cell)
    return netlist | {"modules": {top: module | {"cells": cells}}}


def _connect(cell: dict[str, Any]) -> None:
    """Inputs that are left open are 1."""
    ports, directions = cell["connections"], cell["port_directions"]
    if cell["type"] == "DP16KD":
        ports |= {port: ["x"] for port in _OPEN if port not in ports}
        directions |= dict.fromkeys(_OPEN, "input")
    for port, bits in list(ports.items()):
        if directions[port] == "input":
            ports[port] = ["1" if bit == "x" else bit for bit in bits]
        elif set(bits) == {"x"}:
            del ports[port]

"""Gates and memories of a design before any library is chosen: what a die must have room for."""

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import TargetError
from .macros import WRAPPERS, Macro, memory_macros
from .memories import DESIGN, FLIP_FLOPS, SRAM, memory_mapping
from .processes import Process

FILLED = 0.5
"""Share of the core area that estimated cells take: they are the smallest of their kind, and
buffers, the clock's tree, larger drivers and room for wires come besides."""

_SCRIPT = """
read_rtlil {design}
attrmap -remove init
hierarchy -top {top}
proc
{memories}
flatten
opt_clean -purge
synth -top {top} -flatten -noshare -run coarse:fine
opt -undriven -fine
techmap
opt
dfflegalize -cell $_DFF_P_ x
opt -nodffe -nosdff
abc -g NAND,NOR,AOI3,OAI3,XOR,XNOR,MUX
opt_clean -purge
write_json counted.json
"""


@dataclass(frozen=True)
class GateCount:
    """Gates and macros of a design.

    Parameters
    ----------
    gates : mapping of int
        By Yosys' names of gates; small memories are among them.
    macros : tuple of Macro
        Memories that are worth a macro.
    """

    gates: Mapping[str, int]
    macros: tuple[Macro, ...]

    def core_area(self, process: Process, memories: str) -> float:
        """Square micrometres of a core with this technology for memories."""
        cells = sum(process.cells[kind] * count for kind, count in self.gates.items())
        if memories == FLIP_FLOPS:
            bits = sum(macro.size for macro in self.macros)
            return (cells + bits * process.stored_bit) / FILLED
        return cells / FILLED + sum(map(process.macro_area, self.macros)) / FILLED**0.5


def count_gates(rtlil: str, top: str) -> GateCount:
    """Counts by mapping to Yosys' gates, two inputs mostly; large memories stay macros.

    Raises
    ------
    TargetError
        If Yosys is missing or fails.
    """
    from slipstick_sim.toolchain import ToolError, run_full_yosys

    mapping = memory_mapping(rtlil, SRAM)
    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        mapping.write(folder)
        try:
            run_full_yosys(
                _SCRIPT.format(design=DESIGN, top=top, memories=mapping.commands), cwd=folder
            )
        except ToolError as error:
            raise TargetError(f"gates cannot be counted: {error}") from None
        netlist = json.loads((folder / "counted.json").read_text("utf-8"))
    macros = memory_macros(netlist, top)
    kinds = Counter(cell["type"] for cell in netlist["modules"][top]["cells"].values())
    for wrapper in WRAPPERS.values():
        del kinds[wrapper]
    return GateCount(kinds, macros)

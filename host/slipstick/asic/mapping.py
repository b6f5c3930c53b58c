"""Mapping: a design in RTLIL to the cells of a library, by Yosys and ABC."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Container
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import toolchain as tools
from ..errors import TargetError
from . import clock_gating
from .buffers import insert_buffers
from .hierarchy import Hierarchy, merge
from .macros import WRAPPERS, Macro, memory_macros
from .memories import DESIGN, SRAM, MemoryMapping, memory_mapping
from .pdk import Pdk

BLOCK_DEPTH = 2
"""Levels below the top whose modules stay apart, so that area and power can be told by block."""

NETLIST = "netlist.v"

_ABC = (
    "strash;&get,-n;&fraig,-x;&put;scorr;if,-g,-K,6;strash;&get,-n;&dch,-f;&nf;&put;buffer,-c;"
    "upsize;dnsize"
)
"""ABC's usual script, with logic balanced for depth (``if -g``) instead of rewritten for size: a
quarter faster for a tenth more area, and elements of the array get smaller as well. Then buffers,
and cells of fitting strength."""

_SCRIPT = """
read_rtlil {design}
{gates}hierarchy -check -top {top}
proc
{memories}
flatten
opt_clean -purge
synth -top {top} -flatten {multipliers} -noshare -run coarse:check
select -assert-none t:$_DLATCH* t:$_SR_*
{gating}dfflibmap -liberty cells.lib
opt
abc -liberty cells.lib -script +{abc}
opt_clean -purge
write_json mapped.json
"""

_WRITE = """
read_json buffered.json
write_json netlist.json
write_verilog -noattr -noexpr -nohex netlist.v
"""

_SIGNED = re.compile(r"^(\s*(?:input|output|wire)) signed ", re.M)


@dataclass(frozen=True)
class Block:
    """A module of a netlist.

    Parameters
    ----------
    path : str
        What the gateware calls its first instance.
    area : float
        Of the library's cells in it, those of blocks within and macros not counted: square
        micrometres.
    cells : mapping of int by cell
        How many of each of the library's.
    blocks : mapping of str by instance
        The modules of blocks within.
    """

    path: str
    area: float
    cells: MappingOf[str, int]
    blocks: MappingOf[str, str]


@dataclass(frozen=True)
class Mapping:
    """A mapped design.

    Parameters
    ----------
    top : str
        Its module.
    pdk : Pdk
    folder : Path
        With ``NETLIST``: Verilog of the hierarchy of blocks, every module once; and with
        ``netlist.json``, the same as Yosys' write_json has it.
    blocks : mapping of Block by module
    macros : tuple of Macro
        Memories, whose area is not that of any block.
    seconds : float
    """

    top: str
    pdk: Pdk
    folder: Path
    blocks: MappingOf[str, Block]
    macros: tuple[Macro, ...]
    seconds: float

    @property
    def area(self) -> float:
        """Adds the areas of all cells, macros not counted; square micrometres."""
        return self.area_within(self.top)

    @property
    def gated(self) -> bool:
        """Some of its clocks may stop."""
        return clock_gating.NAME in self.pdk.cells

    @property
    def design(self) -> dict[str, Any]:
        """The netlist as Yosys' write_json has it."""
        return json.loads((self.folder / "netlist.json").read_text("utf-8"))

    @property
    def cells(self) -> Counter[str]:
        """Counts the cells of the design, by their names in the library."""
        return self._cells(self.top)

    def area_within(self, module: str) -> float:
        """Adds the areas of a block's cells and of those of the blocks in it."""
        block = self.blocks[module]
        return block.area + sum(map(self.area_within, block.blocks.values()))

    def _cells(self, module: str) -> Counter[str]:
        block = self.blocks[module]
        return sum(map(self._cells, block.blocks.values()), Counter(block.cells))


def map_design(
    rtlil: str,
    top: str,
    pdk: Pdk,
    folder: Path,
    *,
    block_depth: int = BLOCK_DEPTH,
    memories: str = SRAM,
    booth: bool = True,
    gated: bool = False,
) -> Mapping:
    """Maps a design to a library; its files and logs stay in the folder.

    Registers with reset or enable become plain ones with gates where the library has no such
    cells. Equal modules are mapped once. Nets of many loads get trees of buffers, clocks none;
    there are no wires: loads are those of pins.

    Parameters
    ----------
    rtlil : str
        As Amaranth's back-end writes it.
    top : str
        Its top module.
    pdk : Pdk
    folder : Path
        Made if it is missing; files of an earlier mapping are overwritten.
    block_depth : int
        Levels below the top whose modules stay apart; with 0 only numbered ones do, such as the
        elements of an array.
    memories : str
        ``SRAM`` for macros of large memories, ``FLIP_FLOPS`` for none.
    booth : bool
        Multipliers by Booth's recoding, which are smaller than plain ones and no slower.
    gated : bool
        Registers with a common enable get their clock through a gate, :mod:`.clock_gating`.

    Raises
    ------
    TargetError
        If a tool is missing or fails, or a cell that is needed is not in the library.
    """
    started = time.monotonic()
    yosys = tools.YOSYS.find()
    folder.mkdir(parents=True, exist_ok=True)
    gate = clock_gating.find_clock_gate(pdk) if gated else None
    if gate is not None:
        pdk = clock_gating.with_clock_gate(pdk, gate)
        (folder / "clock_gate.v").write_text(clock_gating.BLACK_BOX, "utf-8")
    memory = memory_mapping(rtlil, memories)
    hierarchy = merge(memory.design, top)
    _write_inputs(hierarchy, hierarchy.blocks(block_depth), memory, pdk, folder)
    script = _SCRIPT.format(
        design=DESIGN,
        top=hierarchy.top,
        memories=memory.commands,
        multipliers="-booth" if booth else "",
        gates="read_verilog -lib clock_gate.v\n" if gated else "",
        gating=clock_gating.COMMANDS if gated else "",
        abc=_ABC,
    )
    _run(yosys, "mapping", script, folder)
    netlist = json.loads((folder / "mapped.json").read_text("utf-8"))
    modules = [module.name for module in hierarchy if module.name in netlist["modules"]]
    if gate is not None:
        clock_gating.split_gates(netlist, modules, pdk)
    insert_buffers(netlist, modules, pdk)
    (folder / "buffered.json").write_text(json.dumps(netlist), "utf-8")
    _run(yosys, "writing", _WRITE, folder)
    _remove_signs(folder / NETLIST)
    if gate is not None:
        with (folder / NETLIST).open("a", encoding="utf-8") as file:
            file.write(gate.verilog)
    blocks = {
        name: _block(hierarchy.modules[name].path, netlist["modules"][name], pdk, modules, gate)
        for name in modules
    }
    macros = memory_macros(netlist, hierarchy.top)
    return Mapping(hierarchy.top, pdk, folder, blocks, macros, time.monotonic() - started)


def _write_inputs(
    hierarchy: Hierarchy, kept: frozenset[str], memory: MemoryMapping, pdk: Pdk, folder: Path
) -> None:
    """Writes the files that Yosys reads; YoWASP's sees no files but those in its folder."""
    shutil.copyfile(pdk.liberty, folder / "cells.lib")
    replace(memory, design=hierarchy.rtlil(kept)).write(folder)


def _run(yosys: str, step: str, script: str, folder: Path) -> None:
    (folder / f"{step}.ys").write_text(script.lstrip(), "utf-8")
    command = [yosys, "-q", "-l", f"{step}.yosys.log", "-s", f"{step}.ys"]
    tools.run(step, command, folder=folder, log=folder / f"{step}.log")


def _remove_signs(netlist: Path) -> None:
    """Declarations of signed wires: gates do not care, and OpenSTA does not know the word."""
    netlist.write_text(_SIGNED.sub(r"\1 ", netlist.read_text("utf-8")), "utf-8")


def _block(
    path: str,
    module: MappingOf[str, Any],
    pdk: Pdk,
    known: Container[str],
    gate: clock_gating.ClockGate | None,
) -> Block:
    """Makes the block of a module that ``write_json`` wrote."""
    kinds = {instance: cell["type"] for instance, cell in module["cells"].items()}
    cells = Counter(kind for kind in kinds.values() if kind in pdk.cells)
    blocks = {instance: kind for instance, kind in kinds.items() if kind in known}
    unmapped = set(kinds.values()) - set(cells) - set(blocks.values()) - set(WRAPPERS.values())
    if unmapped:
        raise TargetError(
            f"PDK {pdk.name} must have cells for all that {path} needs, and has none for"
            f" {', '.join(sorted(unmapped))}"
        )
    area = sum(pdk.cells[kind].area * count for kind, count in cells.items())
    if gate is not None:
        gates = cells.pop(clock_gating.NAME, 0)
        cells.update({part.name: gates for part in gate.parts if gates})
    return Block(path, area, cells, blocks)

"""Measures pieces of gateware on an ECP5: what synthesis makes of them, and what the clock is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.rtlil import convert
from slipstick_rtl.toplevel.registry import find_board

from ... import toolchain as tools
from ...asic.implementation import TOP, Implementation, implement
from ...asic.memories import FLIP_FLOPS
from ...asic.pdk import find_pdk
from ...errors import TargetError
from ...fpga import budget, synthesis
from ...fpga.place_and_route import does_not_fit, read_report
from ...fpga.toolchains import TIMING, Ecp5
from .kinds import Kind

if TYPE_CHECKING:
    from slipstick_rtl.experiments.pieces import Piece

PARTS = tuple(find_board(name).part for name in ("ulx3s-25f", "ulx3s-45f", "ulx3s-85f"))
"""Columns and units are placed on the first, arrays on another."""

ROWS = 16
"""Rows of a column of elements: linear sums grow with every row."""

ASKED_MHZ = 250

PDK = "gscl45"
_FULLEST = 0.9
"""Share of a part's places that an array's elements may take: there is more around them."""

_ROOMY = 0.7
"""The same where there is a larger part: placers take hours to fill one to the brim."""


RESOURCES = ("lut", "ff", "dsp", "bram")
SEED = 1

_DISTRIBUTED = "TRELLIS_DPR16X4"
_DISTRIBUTED_LUTS = 6
"""LUTs that place and route takes for a block of distributed memory."""


def synthesise(gateware: Any, part: Part, folder: Path, ports: Any = None) -> dict[str, int]:
    """Writes the netlist of a design; counts what place and route will make of its cells."""
    from slipstick_rtl.fpga.ecp5.netlist import Chip
    from slipstick_rtl.toplevel import design

    toolchain = Ecp5()
    folder.mkdir(parents=True, exist_ok=True)
    rtlil = _rtlil(gateware, ports, Chip(part.device), design.TOP)
    (folder / design.RTLIL).write_text(rtlil, "utf-8")
    netlist = synthesis.synthesise(tools.YOSYS.find(), toolchain, part, folder)
    distributed = budget.count_cells(netlist)[_DISTRIBUTED]
    found = budget.needs(netlist, toolchain)
    found["lut"] += _DISTRIBUTED_LUTS * distributed
    return {"ff": budget.count_registers(netlist, toolchain), **found}


def gates_of(piece: "Piece", folder: Path) -> Implementation:
    """A piece in standard cells. Tables are logic: an element has no memory."""
    rtlil = _rtlil(piece.gateware, [*piece.inputs, *piece.outputs], None, TOP)
    return implement(rtlil, find_pdk(PDK), folder, memories=FLIP_FLOPS)


def _rtlil(gateware: Any, ports: Any, platform: Any, top: str) -> str:
    return convert(gateware, name=top, platform=platform, ports=ports)


def element(kind: Kind, folder: Path) -> dict[str, Any]:
    """Counts the resources of an element, on the average of a column that is synthesised."""
    piece, part = kind.column(ROWS), PARTS[0]
    found = synthesise(piece.gateware, part, folder, [*piece.inputs, *piece.outputs])
    return {
        "rows": ROWS,
        **{name: round(found[name] / piece.elements, 2) for name in RESOURCES},
    }


def column(kind: Kind, folder: Path) -> dict[str, Any]:
    """A column of elements between registers, placed and routed."""
    return {"rows": ROWS, **routed(kind.column(ROWS), PARTS[0], folder)}


def gates(kind: Kind, folder: Path) -> dict[str, Any]:
    """A column of elements in standard cells: an element's area on the average, and the clock."""
    piece = kind.column(ROWS)
    done = gates_of(piece, folder)
    return {
        "rows": ROWS,
        "pdk": PDK,
        "um2": round(done.cell_area / piece.elements, 1),
        "period_ns": round(done.timing.period_ns, 3),
    }


def array(kind: Kind, folder: Path, *, side: int) -> dict[str, Any]:
    """An array between registers, placed and routed on the smallest part that has a place for it.

    Returns
    -------
    dict
        With ``does_not_fit`` in place of the figures if no part has: so many columns as synthesis
        makes them take more than the largest.
    """
    shape = {"shape": f"{side}x{side}"}
    piece = kind.column(side)
    found = synthesise(
        piece.gateware, PARTS[-1], folder / "column", [*piece.inputs, *piece.outputs]
    )
    columns = side * side / piece.elements
    needed = {name: round(count * columns) for name, count in found.items()}
    for part, share in zip(PARTS[1:], (_ROOMY, _FULLEST), strict=True):
        if not budget.overfull(needed, part, share):
            return {**shape, **routed(kind.array(side), part, folder)}
    part = PARTS[-1]
    lacking = budget.overfull(needed, part, _FULLEST)
    return {**shape, "device": part.device, "does_not_fit": lacking}


def unit(lns: Lns, folder: Path, *, compensated: bool) -> dict[str, Any]:
    """The unit between registers, placed and routed; ``own`` is what it takes without them."""
    from slipstick_rtl.experiments import pieces

    made, part = pieces.unit(lns, compensated=compensated), PARTS[0]
    found = synthesise(made.gateware, part, folder / "own", [*made.inputs, *made.outputs])
    return {
        "own": {name: found[name] for name in RESOURCES},
        **routed(pieces.unit(lns, compensated=compensated), part, folder),
    }


def routed(piece: "Piece", part: Part, folder: Path) -> dict[str, Any]:
    """A piece between shift registers, placed and routed: what it takes with them, and its clock.

    Returns
    -------
    dict
        With ``does_not_fit`` in place of the figures if the part is too small.
    """
    toolchain = Ecp5()
    synthesise(piece.rig(), part, folder)
    (folder / toolchain.pins).write_text("", "utf-8")
    (folder / f"seed_{SEED}").mkdir(exist_ok=True)
    placing = toolchain.placing(part, asked_mhz=ASKED_MHZ, seed=SEED, folder=f"seed_{SEED}")
    command, log = [toolchain.place_and_route.find(), *placing], folder / "place.log"
    try:
        tools.run("place and route", command, folder=folder, log=log)
    except TargetError:
        overfull = does_not_fit(log.read_text("utf-8"))
        if overfull is None:
            raise
        return {"device": part.device, "does_not_fit": overfull}
    layout = read_report(folder / f"seed_{SEED}" / TIMING, toolchain.resources)
    return {
        "device": part.device,
        **{name: layout.usage[name].used for name in RESOURCES},
        "fmax_mhz": round(layout.fmax_mhz, 2),
        "asked_mhz": ASKED_MHZ,
        "seed": SEED,
    }

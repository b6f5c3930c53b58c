"""What number formats cost on an ECP5: elements by synthesis, whole arrays by place and route.

``python tools/lns_price.py --unit element`` synthesises a column of ``ROWS`` elements of each
format, and divides by their number: registers that pass operands on are in it, what the array's
edges take is not. ``--unit array`` places and routes a whole array between shift registers. Both
write ``reports/lns_elements.json``, a format at a time: what a run does not measure stays.
"""

import argparse
import importlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amaranth.hdl import Signal
from array_rig import ArrayRig, element_column
from slipstick import build_tools as tools
from slipstick.parts import ULX3S_25F, ULX3S_45F, ULX3S_85F, Part
from slipstick.place_and_route import does_not_fit, read_report
from slipstick.toolchains import NETLIST, TIMING, Ecp5
from slipstick_rtl.boards.ecp5 import Chip
from slipstick_rtl.config import Configuration

REPORT = Path("reports") / "lns_elements.json"
PARTS = {part.device: part for part in (ULX3S_25F, ULX3S_45F, ULX3S_85F)}

INT8_KINDS: Mapping[str, Mapping[str, Any]] = {
    "int8 packed": {"packed": True},
    "int8 plain": {},
    "int8 lut": {"multiplier": "lut"},
}
"""The back-ends of int8's multipliers: two products a DSP block, one, none."""

LNS_FORMATS = (
    *("lns1+2+2", "lns1+3+1"),
    *("lns1+3+2", "lns1+4+1", "lns1+2+3"),
    *("lns1+3+3", "lns1+4+2", "lns1+2+4"),
    *("lns1+3+4", "lns1+4+3", "lns1+2+5"),
)
ROWS = 16
"""Of the column of elements: sums grow with every row."""

TOP = "slipstick"
SEED = 1


def configuration_of(kind: str, rows: int, columns: int) -> Configuration:
    """An array of this shape and kind."""
    fields = dict(INT8_KINDS.get(kind, {"number_format": kind}))
    packed = rows if fields.pop("packed", False) else 0
    base = Configuration(rows=rows, columns=columns, lanes=4, packed_rows=packed)
    return replace(base, **fields)


def synthesise(
    design: Any, part: Part, folder: Path, ports: Sequence[Signal] | None = None
) -> Counter[str]:
    """Writes the netlist of a design; counts what place and route will make of its cells."""
    toolchain = Ecp5()
    folder.mkdir(parents=True, exist_ok=True)
    rtlil = importlib.import_module("amaranth.back.rtlil")
    text = rtlil.convert(design, platform=Chip(part.device), name=TOP, emit_src=False, ports=ports)
    (folder / "design.il").write_text(text, "utf-8")
    script = toolchain.synthesis_script(rtlil="design.il", verilog="design.v", top=TOP)
    (folder / "synthesis.ys").write_text(script, "utf-8")
    command = [tools.YOSYS.find(), "-l", "yosys.log", "-s", "synthesis.ys"]
    tools.run("synthesis", command, folder=folder, log=folder / "synthesis.log")
    netlist = toolchain.finish(json.loads((folder / NETLIST).read_text("utf-8")), part)
    (folder / NETLIST).write_text(json.dumps(netlist), "utf-8")
    cells = Counter(cell["type"] for cell in netlist["modules"][TOP]["cells"].values())
    found = Counter(ff=cells[toolchain.registers])
    for name, kinds in toolchain.cells.items():
        found[name] += sum(count * cells[kind] for kind, count in kinds.items())
    return found


def element(kind: str, part: Part, folder: Path) -> dict[str, float]:
    """What an element takes, on the average of a column."""
    design, ports, elements = element_column(configuration_of(kind, ROWS, ROWS))
    found = synthesise(design, part, folder, ports)
    return {name: round(found[name] / elements, 2) for name in ("lut", "ff", "dsp")}


def array(
    kind: str, part: Part, folder: Path, *, side: int, asked_mhz: float
) -> dict[str, float | int | str]:
    """A placed and routed array; its look-up tables and flip-flops are those of the rig as well."""
    toolchain = Ecp5()
    synthesise(ArrayRig(configuration=configuration_of(kind, side, side)), part, folder)
    (folder / toolchain.pins).write_text("", "utf-8")
    (folder / f"seed_{SEED}").mkdir(exist_ok=True)
    placing = toolchain.placing(part, asked_mhz=asked_mhz, seed=SEED, folder=f"seed_{SEED}")
    command, log = [toolchain.place_and_route.find(), *placing], folder / "place.log"
    try:
        tools.run("place and route", command, folder=folder, log=log)
    except tools.TargetError:
        overfull = does_not_fit(log.read_text("utf-8"))
        if overfull is None:
            raise
        return {"shape": f"{side}x{side}", "device": part.device, "does_not_fit": overfull}
    layout = read_report(folder / f"seed_{SEED}" / TIMING, toolchain.resources)
    used = {name: layout.usage[name].used for name in ("lut", "ff", "dsp")}
    return {
        "shape": f"{side}x{side}",
        "device": part.device,
        **used,
        "fmax_mhz": round(layout.fmax_mhz, 2),
        "asked_mhz": asked_mhz,
        "seed": SEED,
    }


def record(report: Path, section: str, kind: str, command: str, figures: Mapping[str, Any]) -> None:
    """Writes one measurement into the report, with the command that repeats it."""
    known = json.loads(report.read_text("utf-8")) if report.exists() else {}
    versions = {
        tool.name: tools.version_of(tool.find()) for tool in (tools.YOSYS, tools.NEXTPNR_ECP5)
    }
    known.setdefault(section, {})[kind] = {
        **figures,
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }
    report.write_text(json.dumps(known, indent=2) + "\n", "utf-8")


def main(arguments: Iterable[str] | None = None) -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = (*INT8_KINDS, *LNS_FORMATS)
    parser.add_argument("--unit", choices=("element", "array"), required=True)
    parser.add_argument("--formats", nargs="+", choices=kinds, default=kinds, metavar="FORMAT")
    parser.add_argument("--device", choices=PARTS, default=ULX3S_45F.device)
    parser.add_argument("--side", type=int, default=16, help="rows and columns of an array")
    parser.add_argument("--mhz", type=float, default=250, help="asked of place and route")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--folder", type=Path, default=Path("build") / "lns_price")
    options = parser.parse_args(None if arguments is None else list(arguments))
    part = PARTS[options.device]
    for kind in options.formats:
        folder = (options.folder / options.unit / kind.replace(" ", "_")).resolve()
        command = f"python tools/lns_price.py --unit {options.unit} --formats {shlex.quote(kind)}"
        command += f" --device {part.device}"
        if options.unit == "element":
            section, figures = "element", element(kind, part, folder)
        else:
            section = f"array {options.side}x{options.side}"
            command += f" --side {options.side} --mhz {options.mhz:g}"
            name = folder / f"{options.device}-{options.side}"
            figures = array(kind, part, name, side=options.side, asked_mhz=options.mhz)
        record(options.report, section, kind, command, figures)
        print(kind, figures, flush=True)


if __name__ == "__main__":
    main()

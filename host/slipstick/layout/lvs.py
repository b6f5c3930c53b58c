"""netgen: the extracted layout compared with the netlist that was placed."""

import json
from dataclasses import dataclass
from typing import Any

from ..errors import TargetError
from .project import Project
from .running import run_quietly

_MATCH = "Circuits match uniquely."


@dataclass(frozen=True)
class Comparison:
    """Result of netgen's comparison.

    Parameters
    ----------
    matches : bool
        The circuits match uniquely, and no pin, net or cell differs.
    differences : int
        Nets, cells and pins that have no partner.
    """

    matches: bool
    differences: int


def compare(project: Project, netgen: str) -> Comparison:
    """Compares the layout's SPICE with that of the placed netlist.

    Raises
    ------
    TargetError
        If netgen cannot be run, or writes no report that can be read.
    """
    folder = project.folder / "layout"
    name = project.name
    report = folder / "comp.json"
    command = [
        *(netgen, "-batch", "lvs", f"{name}.spice {name}"),
        *(f"{project.file('synthesis', '.spc')} {name}",),
        *(str(project.technology.file("_setup.tcl")), "comp.out", "-json", "-blackbox"),
    ]
    text = run_quietly("lvs", command, folder, project.log("lvs"))
    try:
        found = json.loads(report.read_text("utf-8"))
        differences = count_differences(found)
    except (OSError, ValueError) as error:
        raise TargetError(
            f"netgen wrote no report of {name} that can be read: {error} (the whole log:"
            f" {project.log('lvs')})"
        ) from None
    output = folder / "comp.out"
    said = text + (output.read_text("utf-8", errors="replace") if output.exists() else "")
    return Comparison(_MATCH in said and differences == 0, differences)


def count_differences(report: Any) -> int:
    """Counts what differs between the tops, by netgen's report in JSON.

    Raises
    ------
    ValueError
        If the report is not netgen's list of cells.
    """
    if not isinstance(report, list) or not report or not isinstance(report[-1], dict):
        raise ValueError("the report must be a list of cells, the top last")
    top = report[-1]
    try:
        cells = sum(
            abs(int(first[1]) - int(second[1]))
            for first, second in zip(*top.get("devices", ((), ())), strict=False)
        )
        nets = top.get("nets", (0, 0))
        pins = zip(*top.get("pins", ((), ())), strict=False)
        wrong = sum(_plain(first) != _plain(second) for first, second in pins)
        return (
            cells
            + abs(int(nets[0]) - int(nets[1]))
            + len(top.get("badnets", ()))
            + len(top.get("badelements", ()))
            + wrong
        )
    except (TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"the top's entry is not as netgen writes it: {error}") from None


def _plain(pin: str) -> str:
    return pin.lower().removesuffix("!")

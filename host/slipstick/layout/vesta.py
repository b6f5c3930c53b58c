"""qflow's own timer, vesta, beside OpenSTA: it has the router's capacitances."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from ..asic.pdk import Pdk
from ..errors import TargetError
from .project import Project
from .running import run_quietly
from .technology import QFLOW

_CLOCK = re.compile(r"^Computed maximum clock frequency \(zero margin\) = ([\d.]+) MHz", re.M)
_HOLD = "Design meets minimum hold timing."


@dataclass(frozen=True)
class VestaTiming:
    """Result of vesta: the fastest clock, megahertz, and whether hold is met."""

    fmax_mhz: float
    meets_hold: bool

    def figures(self) -> dict[str, Any]:
        """Returns the figures as reports have them."""
        return asdict(self)


def run_vesta(project: Project, pdk: Pdk) -> VestaTiming:
    """Converts the router's delays and runs vesta on the placed netlist.

    Raises
    ------
    TargetError
        If a program cannot be run, or vesta tells no clock.
    """
    folder, name = project.folder / "timing", project.name
    folder.mkdir(exist_ok=True)
    delays = f"{name}.dly"
    liberty = str(pdk.liberty)
    convert = [str(QFLOW / "bin" / "rc2dly"), "-r", str(project.file("layout", ".rc"))]
    run_quietly("rc2dly", [*convert, "-l", liberty, "-d", delays], folder, project.log("rc2dly"))
    netlist = str(project.file("synthesis", ".rtlnopwr.v"))
    command = [str(QFLOW / "bin" / "vesta"), "-c", "-d", delays, netlist, liberty]
    return read_vesta(run_quietly("vesta", command, folder, project.log("vesta")), name)


def read_vesta(text: str, name: str) -> VestaTiming:
    """Reads what vesta prints; TargetError if it tells no clock."""
    clock = _CLOCK.search(text)
    if clock is None:
        raise TargetError(f"vesta must tell the fastest clock of {name}")
    try:
        return VestaTiming(float(clock[1]), _HOLD in text)
    except ValueError:
        raise TargetError(f"vesta must tell a clock of {name}, not {clock[1]!r}") from None

"""The technologies of Debian's packages, and the programs of a layout."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import toolchain
from ..asic.pdk import Pdk, find_pdk
from ..errors import TargetError

if TYPE_CHECKING:
    from slipstick_sim.tools import Tool

QFLOW = Path("/usr/lib/qflow")
"""qflow's scripts and small programs, where Debian installs them."""

TECHNOLOGIES_FOLDER = Path("/usr/share/qflow/tech")

INSTALL = "apt-get install --no-install-recommends"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a layout.

    Parameters
    ----------
    name : str
        On PATH.
    package : str
        Debian's, that installs it.
    variable : str
        Environment variable that names another one.
    least : str or None
        The oldest version that will do.
    version_option : str
        With which it tells its version.
    """

    name: str
    package: str
    variable: str
    least: str | None = None
    version_option: str = "--version"

    @property
    def is_absent(self) -> bool:
        """True if no variable names it and PATH lacks it."""
        return not os.environ.get(self.variable) and shutil.which(self.name) is None

    def find(self) -> str:
        """Returns its path; TargetError if it is missing or too old."""
        from slipstick_sim.tools import ToolError

        try:
            return self._tool.find()
        except ToolError as error:
            raise TargetError(str(error)) from None

    def version(self) -> str:
        """Returns its version, "unknown" if it tells none; raises as ``find`` does."""
        from slipstick_sim.tools import ToolError

        try:
            return self._tool.version()
        except ToolError as error:
            raise TargetError(str(error)) from None

    @property
    def _tool(self) -> "Tool":
        # imported when it is needed: the command line begins without the simulation
        from slipstick_sim.tools import Tool

        return Tool(
            name=self.name,
            variable=self.variable,
            source=f"{INSTALL} {self.package}",
            least=self.least,
            version_option=self.version_option,
        )


PROGRAMS = (
    Program(name="graywolf", package="graywolf", variable="GRAYWOLF"),
    Program(
        name="qrouter", package="qrouter", variable="QROUTER", least="1.4", version_option="-h"
    ),
    Program(name="magic", package="magic", variable="MAGIC", least="8.3"),
    Program(
        name="netgen-lvs",
        package="netgen-lvs",
        variable="NETGEN",
        least="1.5",
        version_option="-batch",
    ),
    Program(name="qflow", package="qflow", variable="QFLOW", least="1.3"),
    Program(name="sta", package="opensta", variable="OPENSTA", least="2.0.17"),
)
"""Programs that a layout needs besides Yosys."""


@dataclass(frozen=True)
class Technology:
    """A process with cells that Debian has a package of.

    Parameters
    ----------
    name : str
        qflow's name, that of its folder and of most of its files.
    feature_nm : float
        Feature size in nanometres.
    liberty : str
        The liberty file's name.
    strap : str or None
        The layer of straps that join power and ground of the rows, if qflow finds none.
    density : float or None
        Share of the rows that cells may take unless the user says otherwise; None for all.
    has_slivers : bool
        Obstructions of cells have pieces that are narrower than the rules allow.
    """

    name: str
    feature_nm: float
    liberty: str
    strap: str | None = None
    density: float | None = None
    has_slivers: bool = False

    buffer = "BUFX2"
    clock_buffer = "CLKBUF1"
    supplies = ("vdd", "gnd")

    @property
    def package(self) -> str:
        """Debian's name of the package."""
        return f"qflow-tech-{self.name}"

    @property
    def folder(self) -> Path:
        """All files of the technology."""
        return TECHNOLOGIES_FOLDER / self.name

    def file(self, ending: str) -> Path:
        """A file that is called after the technology, such as ``_stdcells.lef``."""
        return self.folder / f"{self.name}{ending}"

    def pdk(self) -> Pdk:
        """The cells as ``slipstick asic`` knows them."""
        return find_pdk(str(self.folder / self.liberty), feature_nm=self.feature_nm)


TECHNOLOGIES: Mapping[str, Technology] = {
    it.name: it
    for it in (
        Technology("osu018", 180.0, "osu018_stdcells.lib"),
        Technology("osu035", 350.0, "osu035_stdcells.lib"),
        Technology(
            "osu050", 500.0, "osu05_stdcells.lib", strap="metal2", density=0.5, has_slivers=True
        ),
    )
}
"""By name."""


def find_technology(name: str) -> Technology:
    """Returns the technology of a name; TargetError if there is none."""
    if name not in TECHNOLOGIES:
        raise TargetError(f"--pdk must be one of {', '.join(TECHNOLOGIES)}, not {name!r}")
    return TECHNOLOGIES[name]


def find_programs(technology: Technology) -> dict[str, str]:
    """Finds every program of a layout; returns their paths by name.

    Raises
    ------
    TargetError
        If packages are missing: one sentence with the command that installs all of them. Or if a
        program is too old.
    """
    toolchain.YOSYS.find()
    missing = [program.package for program in PROGRAMS if program.is_absent]
    if not (QFLOW / "scripts").is_dir() and "qflow" not in missing:
        missing.append("qflow")
    if not technology.file("_stdcells.lef").is_file():
        missing.append(technology.package)
    if missing:
        raise TargetError(
            f"a layout in {technology.name} needs Debian's packages that are missing:"
            f" {INSTALL} {' '.join(missing)}"
        )
    return {program.name: program.find() for program in PROGRAMS}


def versions() -> dict[str, str]:
    """Returns the versions of all programs of a layout, as they tell them."""
    found = {"yosys": toolchain.YOSYS.version()}
    return found | {program.name: program.version() for program in PROGRAMS}

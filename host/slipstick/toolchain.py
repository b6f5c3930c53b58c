"""The tools of a build: found, called, their logs kept."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import TargetError

if TYPE_CHECKING:
    from slipstick_sim import tools


@dataclass(frozen=True)
class Tool:
    """A program that a build calls, as ``slipstick_sim.tools`` knows it by this name."""

    name: str

    @property
    def variable(self) -> str:
        """Environment variable that names another one than the package's."""
        return self._known.variable

    def find(self) -> str:
        """The program of the variable, else the package's, else, if there is none, that on PATH.

        Raises
        ------
        TargetError
            If there is none, or it is too old.
        """
        from slipstick_sim.tools import ToolError

        try:
            return self._known.find()
        except ToolError as error:
            raise TargetError(str(error)) from None

    def version(self) -> str:
        """Returns the program's version, such as ``0.11.1``; "unknown" if it gives none.

        Raises
        ------
        TargetError
            If there is no such program, or it cannot be run.
        """
        from slipstick_sim.tools import ToolError

        try:
            return self._known.version()
        except ToolError as error:
            raise TargetError(str(error)) from None

    @property
    def _known(self) -> "tools.Tool":
        from slipstick_sim.tools import TOOLS

        return TOOLS[self.name]


YOSYS = Tool("yosys")
NEXTPNR_ECP5 = Tool("nextpnr-ecp5")
ECPPACK = Tool("ecppack")
NEXTPNR_ICE40 = Tool("nextpnr-ice40")
ICEPACK = Tool("icepack")
NEXTPNR_GOWIN = Tool("nextpnr-himbaechel-gowin")
GOWIN_PACK = Tool("gowin_pack")
LOADER = Tool("openFPGALoader")
OPENSTA = Tool("sta")
ICARUS = Tool("iverilog")
ICARUS_RUNTIME = Tool("vvp")


def run(what: str, command: Sequence[str], *, folder: Path, log: Path) -> str:
    """Calls a tool in ``folder`` and keeps all it says in ``log``; returns that text.

    Raises
    ------
    TargetError
        If the tool cannot be run or fails: what it did, its last error, and the log.
    """
    with open(log, "w", encoding="utf-8") as file:
        print("$", *command, file=file, flush=True)
        try:
            done = subprocess.run(
                command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=False
            )
        except OSError as error:
            raise TargetError(f"{command[0]} cannot be run: {error.strerror}") from None
    text = log.read_text("utf-8", errors="replace")
    if done.returncode != 0:
        raise TargetError(
            f"{what} failed: {last_error(text, done.returncode)} (the whole log: {log})"
        )
    return text


def last_error(log: str, status: int) -> str:
    """The last line of a log that is an error, else the exit status and the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    if errors:
        return errors[-1].removeprefix("ERROR:").strip()
    return f"exit status {status}, {lines[-1] if lines else 'no output'!r}"

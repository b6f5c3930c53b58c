"""The tools of a build: found, called, their logs kept."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import TargetError

_VERSION = re.compile(r"\d+\.\d[\w.+-]*")


@dataclass(frozen=True)
class Tool:
    """A program that a build calls.

    Parameters
    ----------
    name : str
        What the tool is called where it is installed natively.
    variable : str
        Environment variable that names another one.
    source : str
        Where it comes from, for people who lack it.
    """

    name: str
    variable: str
    source: str = "install the FPGA tools with pip install 'slipstick[build]'"

    def find(self) -> str:
        """The program of the variable, else the native one on PATH, else YoWASP's.

        YoWASP's lies beside the Python that runs, whether that folder is on PATH or not.

        Raises
        ------
        TargetError
            If there is none.
        """
        scripts = str(Path(sys.executable).parent)
        search = os.pathsep.join([os.environ.get("PATH", os.defpath), scripts])
        given = os.environ.get(self.variable)
        for name in [given] if given else [self.name, f"yowasp-{self.name}"]:
            found = shutil.which(name, path=search)
            if found is not None:
                return found
        raise TargetError(
            f"building needs {given or self.name}, which is not on PATH: {self.source}, or name one"
            f" in {self.variable}"
        )


YOSYS = Tool("yosys", "YOSYS")
NEXTPNR_ECP5 = Tool("nextpnr-ecp5", "NEXTPNR_ECP5")
ECPPACK = Tool("ecppack", "ECPPACK")
NEXTPNR_ICE40 = Tool("nextpnr-ice40", "NEXTPNR_ICE40")
ICEPACK = Tool("icepack", "ICEPACK")
NEXTPNR_GOWIN = Tool("nextpnr-himbaechel-gowin", "NEXTPNR_GOWIN")
GOWIN_PACK = Tool("gowin_pack", "GOWIN_PACK")
OPENSTA = Tool("sta", "OPENSTA", "install OpenSTA, Debian's package opensta")


def version_of(program: str) -> str:
    """What a tool gives as its version, such as ``0.11.1``; "unknown" if it gives none."""
    try:
        # some tools ask for commands when they have given it
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise TargetError(f"{program} cannot be run: {error.strerror}") from None
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else "unknown"


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

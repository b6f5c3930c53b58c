"""qflow's project of a block: its folder, its variables, and the scripts that run in it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from .. import toolchain
from ..errors import TargetError
from .lef import read_metal, without_slivers
from .netlist import GateNetlist
from .running import run_quietly
from .special_nets import fill_notches, join_rows
from .technology import QFLOW, Technology

_FOLDERS = ("source", "synthesis", "layout", "log", "bin")

ROUTING = """rename qrouter::cleanup qrouter::cleanup_left_out
proc qrouter::cleanup {{args}} {{puts "cleanup is left out"}}
qrouter::standard_route {name}_route.def false
quit
"""
"""The router's commands. Its clean-up of neighbouring vias is left out: it takes a via out wherever
two layers of a net lie over one another, as if they were joined there. That leaves an open net, or
a via on a piece of metal that is smaller than the rules of the process allow."""

_SEED = "*random.seed"


@dataclass(frozen=True)
class Project:
    """A folder as qflow's scripts want it.

    Parameters
    ----------
    folder : Path
        An absolute path.
    name : str
        The block's, as the files are called.
    technology : Technology
    """

    folder: Path
    name: str
    technology: Technology

    def file(self, place: str, ending: str) -> Path:
        """A file of the block: ``file("layout", ".def")``."""
        return self.folder / place / f"{self.name}{ending}"

    def log(self, step: str) -> Path:
        """The log of a step."""
        return self.folder / "log" / f"{step}.log"

    def write(
        self,
        netlist: GateNetlist,
        programs: dict[str, str],
        seed: int,
        density: float | None = None,
    ) -> None:
        """Makes the folder with all that placement and routing read.

        Parameters
        ----------
        netlist : GateNetlist
        programs : mapping of paths by name
            qflow's scripts call these and no others.
        seed : int
            Of the placement.
        density : float
            Share of the rows that cells may take; by default as much as they need.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True)
        self._link(programs)
        self._write_variables()
        room = "" if density is None else f"set initial_density = {density:g}\n"
        (self.folder / "project_vars.sh").write_text(room, "utf-8")
        vdd, gnd = self.technology.supplies
        self.file("synthesis", "_powerground").write_text(
            f'set vddnet="{vdd}"\nset gndnet="{gnd}"\n', "utf-8"
        )
        self.file("synthesis", ".blif").write_text(netlist.blif(), "utf-8")
        # the placement's script keeps copies of what a synthesis of qflow's would have written
        for ending in (".rtl.v", ".rtlnopwr.v", ".rtlbb.v"):
            self.file("synthesis", ending).write_text("", "utf-8")
        self.log("synth").write_text("", "utf-8")
        shutil.copyfile(self.technology.file(".magicrc"), self.folder / "layout" / ".magicrc")
        parameters = self.technology.file(".par").read_text("utf-8")
        self.file("layout", ".par").write_text(_seeded(parameters, seed), "utf-8")
        self.file("layout", ".cfg2").write_text(ROUTING.format(name=self.name), "utf-8")

    def _link(self, programs: dict[str, str]) -> None:
        own = {path.name: path for path in (QFLOW / "bin").iterdir()}
        given = {
            "netgen" if name == "netgen-lvs" else name: path for name, path in programs.items()
        }
        for name, path in {**own, **given}.items():
            (self.folder / "bin" / name).symlink_to(path)

    def _write_variables(self) -> None:
        values = {
            "projectpath": self.folder,
            "techdir": self.technology.folder,
            "sourcedir": self.folder / "source",
            "synthdir": self.folder / "synthesis",
            "layoutdir": self.folder / "layout",
            "techname": self.technology.name,
            "scriptdir": QFLOW / "scripts",
            "bindir": self.folder / "bin",
            "logdir": self.folder / "log",
        }
        lines = [f"set {name}={value}\n" for name, value in values.items()]
        (self.folder / "qflow_vars.sh").write_text("".join(lines), "utf-8")

    def place(self) -> None:
        """Places the cells, with power stripes, fillers and pins; TargetError if that fails."""
        self._run("place", "placement.sh", ["-d"])
        if self.technology.strap is not None:
            # the router begins with this file
            placed = self.file("layout", "_unroute.def")
            text = placed.read_text("utf-8")
            straps = join_rows(text, self.technology.strap, self.technology.supplies)
            placed.write_text(straps, "utf-8")

    def route(self) -> None:
        """Routes all nets.

        Raises
        ------
        TargetError
            If the router fails, or leaves a net without a route.
        """
        self._run("route", "router.sh", [])
        failed = self.folder / "layout" / "failed.out"
        text = self.log("route").read_text("utf-8", errors="replace")
        if failed.exists() or "Final: No failed routes" not in text:
            raise TargetError(
                f"routing of {self.name} left nets without a route: another --seed or a lower"
                f" --density may help (the whole log: {self.log('route')})"
            )

        routed, lef = self.file("layout", ".def"), self.technology.file("_stdcells.lef")
        metal = read_metal(lef.read_text("utf-8"))
        filled, count = fill_notches(routed.read_text("utf-8"), metal)
        if count:
            routed.write_text(filled, "utf-8")

    def lef_to_check(self) -> Path:
        """The cells' LEF for magic, written anew if it has obstructions that are no metal."""
        original = self.technology.file("_stdcells.lef")
        if not self.technology.has_slivers:
            return original
        text = original.read_text("utf-8")
        path = self.folder / "layout" / "cells.lef"
        path.write_text(without_slivers(text, read_metal(text))[0], "utf-8")
        return path

    def _run(self, step: str, script: str, options: list[str]) -> None:
        """Runs one of qflow's scripts; they say of errors in their log what their status hides."""
        command = [str(QFLOW / "scripts" / script), *options, str(self.folder), self.name]
        what = f"{step} of {self.name}"
        run_quietly(what, command, self.folder, self.folder / "log" / f"{step}.out")
        log = self.log(step)
        said = log.read_text("utf-8", errors="replace") if log.exists() else ""
        if "error condition" in said[-300:]:
            reason = toolchain.last_error(said, 0)
            raise TargetError(f"{what} failed: {reason} (the whole log: {log})")


def _seeded(parameters: str, seed: int) -> str:
    """Parameters of the placement with another seed."""
    lines = [line for line in parameters.splitlines() if not line.startswith(_SEED)]
    return "\n".join([*lines, f"{_SEED}\t      : {seed}"]) + "\n"

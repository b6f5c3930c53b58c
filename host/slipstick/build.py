"""Bitstreams: gateware to RTLIL, synthesis, place and route, packing, and a report of it all."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import build_tools as tools
from . import reports
from .errors import TargetError
from .place_and_route import Layout, does_not_fit, read_report
from .targets import TARGETS, Part, Target

DEFAULT_SEED = 2

_FAMILIES = {"LFE5U-12F": "--12k", "LFE5U-25F": "--25k", "LFE5U-45F": "--45k", "LFE5U-85F": "--85k"}
_CLOCK_SITES = {"CABGA381": "G2"}
"""A pin of each package from which a global clock can be driven; nextpnr does not look for one."""

CLOCK_MARGIN = 1.05
"""What place and route is asked for, over the clock of the target: it stops where it is content."""

ROUTER = "router1"
"""nextpnr's other one, router2, goes round in circles with this core on a half-full chip."""

_NETLIST = "netlist.json"
_PINS = "pins.lpf"
_TIMING = "timing.json"
_CONFIGURATION = "slipstick.config"
_BITSTREAM = "slipstick.bit"


@dataclass(frozen=True)
class Build:
    """A finished build.

    Parameters
    ----------
    target : Target
    layout : Layout
        Resources and clock.
    bitstream : Path
    seconds : float
        All steps together.
    seed : int
        Of place and route.
    versions : dict
        What each tool says of its version, by the tool's name.
    """

    target: Target
    layout: Layout
    bitstream: Path
    seconds: float
    seed: int
    versions: dict[str, str]

    @property
    def meets_clock(self) -> bool:
        """Whether the clock that the target is built for was reached."""
        return self.layout.fmax_mhz * 1e6 >= self.target.configuration.clock_hz

    def figures(self) -> dict[str, Any]:
        """The build as ``--json`` and the reports have it."""
        usage = self.layout.usage
        return {
            "target": self.target.name,
            "fingerprint": self.target.configuration.fingerprint,
            "fmax_mhz": round(self.layout.fmax_mhz, 2),
            "clock_mhz": self.target.configuration.clock_hz / 1e6,
            "asked_mhz": _asked_mhz(self.target),
            "meets_clock": self.meets_clock,
            **{name: entry.used for name, entry in usage.items()},
            "available": {name: entry.available for name, entry in usage.items()},
            "bitstream": _as_seen_from_here(self.bitstream),
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "slowest_path": list(self.layout.slowest_path),
            "tools": self.versions,
        }


def default_output(target: Target) -> Path:
    """Where a build's files go unless the user says otherwise."""
    return Path("build") / "bitstreams" / target.name


def build(
    target: Target,
    *,
    seed: int = DEFAULT_SEED,
    output: Path | None = None,
    step: Callable[[str], AbstractContextManager[None]] | None = None,
) -> Build:
    """Builds the bitstream of a target; its files and logs stay in the output folder.

    Parameters
    ----------
    target : Target
        One with a part.
    seed : int
        Of place and route, whose result depends on it by some per cent.
    output : Path
        A folder, made if it is missing; by default ``build/bitstreams/TARGET``.
    step : callable
        Called with what is being done; the step runs inside the context that it returns.

    Raises
    ------
    TargetError
        If the target has no board, a tool is missing or fails, or the design does not fit.
    """
    part = _part(target)
    programs = {tool.name: tool.find() for tool in tools.ALL}
    folder = (output or default_output(target)).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    show = step or (lambda what: nullcontext())
    started = time.monotonic()
    with show("gateware to RTLIL"):
        _generate(target, folder)
    with show("synthesis"):
        _synthesise(programs[tools.YOSYS.name], folder)
    with show(f"place and route for {part.device}"):
        layout = _place_and_route(programs[tools.NEXTPNR.name], target, part, seed, folder)
    with show("packing"):
        tools.run(
            "packing",
            [programs[tools.ECPPACK.name], "--compress", _CONFIGURATION, _BITSTREAM],
            folder=folder,
            log=folder / "packing.log",
        )
    seconds = time.monotonic() - started
    versions = {name: tools.version_of(program) for name, program in programs.items()}
    return Build(target, layout, folder / _BITSTREAM, seconds, seed, versions)


def write_report(done: Build, command: str) -> Path:
    """Writes ``reports/build-TARGET.json``, where benchmarks look for the clock; returns it."""
    return reports.write(f"build-{done.target.name}", command, done.figures())


def _as_seen_from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _asked_mhz(target: Target) -> float:
    return round(target.configuration.clock_hz / 1e6 * CLOCK_MARGIN, 3)


def _part(target: Target) -> Part:
    if target.board is None or target.part is None:
        boards = [name for name, other in TARGETS.items() if other.board is not None]
        raise TargetError(
            f"target {target.name} has no board to build for; those that have: {', '.join(boards)}"
        )
    if target.part.device not in _FAMILIES or target.part.package not in _CLOCK_SITES:
        raise TargetError(
            f"target {target.name} must have one of the parts {', '.join(_FAMILIES)} in one of"
            f" {', '.join(_CLOCK_SITES)}, not {target.part.device} in {target.part.package}"
        )
    return target.part


def _generate(target: Target, folder: Path) -> None:
    try:
        from slipstick_rtl.boards.bare import BareTop
        from slipstick_rtl.boards.design import write_design
    except ImportError as error:
        raise TargetError(
            f"building needs the Python package {error.name}: pip install 'slipstick[build]'"
        ) from None
    write_design(BareTop(configuration=target.configuration), folder)


def _synthesise(yosys: str, folder: Path) -> None:
    from slipstick_rtl.boards import design, ecp5

    script = ecp5.synthesis_script(
        rtlil=design.RTLIL, verilog=design.VERILOG, netlist=_NETLIST, top=design.TOP
    )
    (folder / "synthesis.ys").write_text(script, "utf-8")
    log = folder / "synthesis.log"
    tools.run("synthesis", [yosys, "-s", "synthesis.ys"], folder=folder, log=log)
    path = folder / _NETLIST
    netlist = json.loads(path.read_text("utf-8"))
    ecp5.release_carries(netlist)
    path.write_text(json.dumps(netlist), "utf-8")


def _place_and_route(nextpnr: str, target: Target, part: Part, seed: int, folder: Path) -> Layout:
    clock = f'LOCATE COMP "clk" SITE "{_CLOCK_SITES[part.package]}";\n'
    (folder / _PINS).write_text(clock + 'IOBUF PORT "clk" IO_TYPE=LVCMOS33;\n', "utf-8")
    command = [
        nextpnr,
        _FAMILIES[part.device],
        "--package",
        part.package,
        "--speed",
        str(part.speed),
        "--json",
        _NETLIST,
        "--lpf",
        _PINS,
        "--lpf-allow-unconstrained",
        "--textcfg",
        _CONFIGURATION,
        "--report",
        _TIMING,
        "--freq",
        f"{_asked_mhz(target):g}",
        "--seed",
        str(seed),
        "--router",
        ROUTER,
        "--timing-allow-fail",
    ]
    log = folder / "place_and_route.log"
    try:
        tools.run("place and route", command, folder=folder, log=log)
    except TargetError:
        overfull = does_not_fit(log.read_text("utf-8", errors="replace")) if log.exists() else None
        if overfull is None:
            raise
        raise TargetError(
            f"target {target.name} does not fit on {part.device}: it needs {overfull}"
            f" (the whole log: {log})"
        ) from None
    return read_report(folder / _TIMING)

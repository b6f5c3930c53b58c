"""Bitstreams: gateware to RTLIL, synthesis, place and route, packing, and a report of it all."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.phy.registry import all_wires
from slipstick_rtl.phy.uart_rates import DEFAULT_BAUD
from slipstick_rtl.toplevel.registry import all_boards

from .. import toolchain as tools
from ..errors import TargetError
from ..targets import TARGETS, Target
from .area import in_luts
from .budget import check_capacity, check_netlist, count_registers
from .place_and_route import Layout
from .seeds import Attempt, Placer, Spread, best_of
from .synthesis import synthesise
from .toolchains import Toolchain, find_toolchain

DEFAULT_SEED = 1
"""Most boards of ``TARGETS`` reached their clock with it; the others' reports name theirs."""

DEFAULT_LINK = "uart"
BARE = "bare"
"""Instead of a link: the core alone on the chip, its streams on pins, for measuring it."""

CLOCK_MARGIN = 1.05
"""Ratio of the clock asked of place and route to the target's: it stops once it is content."""


@dataclass(frozen=True)
class Build:
    """A finished build.

    Parameters
    ----------
    target : Target
    attempts : tuple of Attempt
        Each seed of place and route.
    best : Attempt
        The one that the bitstream is made of.
    bitstream : Path
    seconds : float
        All steps together.
    link : str
        The physical layer, or ``BARE``.
    versions : dict
        What each tool says of its version, by the tool's name.
    registers : int
        Flip-flops after synthesis.
    options : mapping
        Of the physical layer, where they are not the board's own: ``baud``, ``ip``, ``mac``.
    placer : str
        Of place and route; "" if the family has no choice.
    """

    target: Target
    attempts: tuple[Attempt, ...]
    best: Attempt
    bitstream: Path
    seconds: float
    link: str
    versions: dict[str, str]
    registers: int
    options: Mapping[str, Any] = field(default_factory=dict)
    placer: str = ""

    @property
    def layout(self) -> Layout:
        """Resources and clock of the best."""
        assert self.best.layout is not None
        return self.best.layout

    @property
    def meets_clock(self) -> bool:
        """Tells whether the clock that the target is built for was reached, and all others."""
        wanted = self.target.configuration.clock_hz
        return self.layout.fmax_mhz * 1e6 >= wanted and not self.layout.missed

    def figures(self) -> dict[str, Any]:
        """The build as ``--json`` and the reports have it."""
        usage = self.layout.usage
        return {
            "target": self.target.name,
            "link": self.link,
            **self.options,
            "fingerprint": self.target.configuration.fingerprint,
            "fmax_mhz": round(self.layout.fmax_mhz, 2),
            "clock_mhz": self.target.configuration.clock_hz / 1e6,
            "asked_mhz": asked_mhz(self.target),
            "meets_clock": self.meets_clock,
            "missed_clocks": list(self.layout.missed),
            "ff": self.registers,
            **{name: entry.used for name, entry in usage.items()},
            "available": {name: entry.available for name, entry in usage.items()},
            "bitstream": _as_seen_from_here(self.bitstream),
            "seconds": round(self.seconds, 1),
            "seed": self.best.seed,
            "seeds": [attempt.figures() for attempt in self.attempts],
            "slowest_path": list(self.layout.slowest_path),
            "tools": self.versions,
            **({"placer": self.placer} if self.placer else {}),
            **({"threads": " ".join(self.best.threads)} if self.best.threads else {}),
        }


def default_output(target: Target) -> Path:
    """Returns where a build's files go unless the user says otherwise."""
    return Path("build") / "bitstreams" / target.name


def asked_mhz(target: Target) -> float:
    """Returns what place and route is asked for."""
    return round(target.configuration.clock_hz / 1e6 * CLOCK_MARGIN, 3)


def build(
    target: Target,
    *,
    seeds: Sequence[int] = (DEFAULT_SEED,),
    routed: int | None = None,
    link: str = DEFAULT_LINK,
    options: Mapping[str, Any] | None = None,
    placer: str | None = None,
    output: Path | None = None,
    step: Callable[[str], AbstractContextManager[None]] | None = None,
    spread: Spread | None = None,
) -> Build:
    """Builds the bitstream of a target; its files and logs stay in the output folder.

    Parameters
    ----------
    target : Target
        One with a part.
    seeds : sequence of int
        Of place and route, whose result depends on them by some per cent; the best is kept.
    routed : int
        Of the placements with all seeds, only so many are routed: those that look fastest.
    link : str
        The physical layer, one that the board has pins for; ``BARE`` for none, and no board.
    options : mapping, optional
        For the physical layer, in place of the board's own: a UART's ``baud``, or ``ip`` and
        ``mac`` of Ethernet.
    placer : str, optional
        Of place and route, where the family has a choice: ``heap`` or ``static``, by default the
        first.
    output : Path
        A folder, made if it is missing; by default ``build/bitstreams/TARGET``.
    step : callable
        Called with what is being done; the step runs inside the context that it returns.
    spread : callable, optional
        Runs the seeds of place and route elsewhere; see ``Placer.place_all``.

    Raises
    ------
    TargetError
        If the target has no board or its board no such link, a tool is missing or fails, or the
        design does not fit.
    """
    part = _part(target)
    toolchain = find_toolchain(part)
    wire = all_wires().get(link)
    board_options = _board_options(target, link)
    check_capacity(target, part, toolchain, wire, board_options)
    placer = toolchain.placer(placer)
    programs = {tool.name: tool.find() for tool in toolchain.tools}
    folder = (output or default_output(target)).resolve()
    clear(folder, toolchain)
    show = step or (lambda what: nullcontext())
    started = time.monotonic()
    with show("gateware to RTLIL"):
        _generate(target, part, link, options or {}, toolchain, folder)
    with show("synthesis"):
        netlist = synthesise(
            programs[tools.YOSYS.name],
            toolchain,
            part,
            folder,
            in_luts=in_luts(target.configuration, part, wire, board_options),
        )
        check_netlist(netlist, target, part, toolchain)
    with show(f"place and route for {part.device}{_seeds_told(seeds, routed)}"):
        program = programs[toolchain.place_and_route.name]
        way = Placer(toolchain, program, target, part, asked_mhz(target), folder, placer)
        attempts = way.place_all(seeds, routed, spread)
        best = best_of(attempts)
    with show("packing"):
        toolchain.repair(folder / best.folder / toolchain.placed)
        packer = programs[toolchain.packer.name]
        command = [packer, *toolchain.packing(part, best.folder)]
        tools.run("packing", command, folder=folder, log=folder / "packing.log")
    seconds = time.monotonic() - started
    versions = {tool.name: tool.version() for tool in toolchain.tools}
    bitstream = folder / toolchain.bitstream
    registers = count_registers(netlist, toolchain)
    return Build(
        target,
        tuple(attempts),
        best,
        bitstream,
        seconds,
        link,
        versions,
        registers,
        dict(options or {}),
        placer,
    )


def _seeds_told(seeds: Sequence[int], routed: int | None) -> str:
    if len(seeds) == 1:
        return ""
    some = "" if routed is None or routed >= len(seeds) else f", {routed} of them routed"
    return f", {len(seeds)} seeds{some}"


def _as_seen_from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _part(target: Target) -> Part:
    if target.board is None or target.part is None:
        boards = [name for name, other in TARGETS.items() if other.board is not None]
        raise TargetError(
            f"target {target.name} has no board to build for; those that have: {', '.join(boards)}"
        )
    return target.part


def clear(folder: Path, toolchain: Toolchain) -> None:
    """Makes a build's folder; what an earlier build left must not be taken for this one's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (toolchain.bitstream, "design.json"):
        (folder / name).unlink(missing_ok=True)
    for earlier in (*folder.glob("seed_*"), *folder.glob("clock_*"), *folder.glob("sources")):
        shutil.rmtree(earlier)


def uart_baud(target: Target, link: str, options: Mapping[str, Any]) -> int | None:
    """The rate that a build's UART is to make; None if the wire is another one."""
    if link != DEFAULT_LINK:
        return None
    return int({**_board_options(target, link), **options}.get("baud", DEFAULT_BAUD))


def _board_options(target: Target, link: str) -> Mapping[str, Any]:
    """Finds the options of a wire in the board's record; nothing if it has none of the name."""
    wires = all_boards()[target.board].wires if target.board else ()
    return next((pins.options for pins in wires if pins.wire == link), {})


def _generate(
    target: Target,
    part: Part,
    link: str,
    options: Mapping[str, Any],
    toolchain: Toolchain,
    folder: Path,
) -> None:
    try:
        from slipstick_rtl.fpga.ecp5 import netlist as ecp5
        from slipstick_rtl.toplevel import design
        from slipstick_rtl.toplevel.bare_top import BareTop

        if link == BARE:
            top = BareTop(configuration=target.configuration)
            design.write_design(top, folder, ecp5.Chip(part.device))
            pins = _bare_pins(target)
        else:
            pins = design.write_board_design(
                target.board or "",
                target.configuration,
                link,
                asked_mhz(target),
                folder,
                options,
            )
    except ImportError as error:
        extra = "ethernet" if error.name == "liteeth" else "build"
        raise TargetError(
            f"building needs the Python package {error.name}: pip install 'slipstick[{extra}]'"
        ) from None
    except ValueError as error:
        raise TargetError(f"target {target.name}: {error}") from None
    (folder / toolchain.pins).write_text(pins, "utf-8")


def _bare_pins(target: Target) -> str:
    """Returns a place for the clock; nextpnr finds the others."""
    boards = all_boards()
    site = boards[target.board].bare_clock_site if target.board in boards else ""
    if not site:
        known = ", ".join(name for name, board in boards.items() if board.bare_clock_site)
        raise ValueError(f"a bare core must be on the FPGA of {known}, not of {target.board}")
    return f'LOCATE COMP "clk" SITE "{site}";\nIOBUF PORT "clk" IO_TYPE=LVCMOS33;\n'

"""The clock of a bitstream: one that the user names, or the fastest that a build reaches."""

import importlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.phy.uart_rates import uart_divisor
from slipstick_rtl.toplevel.registry import all_boards

from ..errors import TargetError
from ..targets import Target
from .build import Build, clear
from .toolchains import find_toolchain

RESERVE = 0.01
"""By how much of itself a clock must be below what nextpnr reports. nextpnr's delays are those of
the slowest chip; what they leave out is the PLL's jitter: 100 ps from peak to peak (data sheet of
the ECP5 family), 0.6 % of half a period at 120 MHz."""

MOST_BUILDS = 3
"""The same core at another clock is another netlist: one 25F reached 119.4 MHz as built for 100,
and 106.1 as built for 117.5."""


@dataclass(frozen=True)
class FastestBuild:
    """Result of :func:`build_fastest`.

    Parameters
    ----------
    best : Build
        The one with the fastest clock of those that reached theirs; if none did, the last one.
    builds : tuple of Build
        All, in their order.
    """

    best: Build
    builds: tuple[Build, ...]


def at_clock(target: Target, clock_hz: int, *, pll: bool = True) -> Target:
    """The target with another clock.

    Programs and their results stay the same, as the fingerprint leaves the clock out.

    Parameters
    ----------
    target : Target
    clock_hz : int
    pll : bool
        Whether the board's PLL has to make it; a bare core's clock comes from outside.

    Raises
    ------
    TargetError
        If its board's PLL does not make that clock; the message names the nearest ones.
    """
    if pll and target.part is not None:
        try:
            _clocking(target.part).find_pll(_oscillator_hz(target), clock_hz)
        except ValueError as error:
            raise TargetError(f"target {target.name}: {error}") from None
    return replace(target, configuration=replace(target.configuration, clock_hz=clock_hz))


def highest_clock(target: Target, limit_hz: float, *, baud: int | None = None) -> int | None:
    """The highest clock in Hz up to a limit that the board's PLL makes; None if there is none.

    Parameters
    ----------
    target : Target
        One with a board.
    limit_hz : float
    baud : int, optional
        A rate that the UART must be able to make of the clock.
    """
    if target.part is None:
        return None
    made = {round(hertz) for hertz in _clocking(target.part).clocks(_oscillator_hz(target))}
    possible = (hertz for hertz in made if hertz <= limit_hz)
    return max((hertz for hertz in possible if _makes(hertz, baud)), default=None)


def build_fastest(
    target: Target,
    build_at: Callable[[Target, Path], Build],
    output: Path,
    *,
    baud: int | None = None,
) -> FastestBuild:
    """Builds for higher and higher clocks, until place and route reaches no more.

    The first build is for the target's own clock. Each further one is for the highest clock that
    the PLL makes and that is ``RESERVE`` below what the one before it reached, whether that is
    higher or, after a miss, lower. It ends after ``MOST_BUILDS``, or when the next clock would not
    be faster than the fastest one that was reached.

    Parameters
    ----------
    target : Target
        One with a board.
    build_at : callable
        Builds a target into a folder.
    output : Path
        Each build has a folder in it; the best one's bitstream and description are copied here.
    baud : int, optional
        A rate that the UART must be able to make of each clock.
    """
    builds: list[Build] = []
    best: Build | None = None
    wanted: int | None = target.configuration.clock_hz
    if target.part is not None:
        clear(output, find_toolchain(target.part))
    while wanted is not None and len(builds) < MOST_BUILDS:
        folder = output / f"clock_{wanted / 1e6:g}"
        builds.append(build_at(at_clock(target, wanted), folder))
        if _reaches(builds[-1]):
            best = builds[-1]
        reached = builds[-1].layout.fmax_mhz * 1e6
        wanted = highest_clock(target, reached / (1 + RESERVE), baud=baud)
        known = 0 if best is None else best.target.configuration.clock_hz
        tried = {done.target.configuration.clock_hz for done in builds}
        if wanted is not None and (wanted <= known or wanted in tried):
            wanted = None
    chosen = builds[-1] if best is None else best
    for path in (chosen.bitstream, chosen.bitstream.parent / "design.json"):
        if path.is_file():
            shutil.copyfile(path, output / path.name)
    moved = replace(chosen, bitstream=(output / chosen.bitstream.name).resolve())
    return FastestBuild(moved, tuple(builds))


def _reaches(done: Build) -> bool:
    """Tells whether a build reached its clock with the reserve, and every other clock."""
    wanted = done.target.configuration.clock_hz * (1 + RESERVE)
    return done.meets_clock and done.layout.fmax_mhz * 1e6 >= wanted


def _makes(clock_hz: int, baud: int | None) -> bool:
    if baud is None:
        return True
    try:
        uart_divisor(clock_hz, baud)
    except ValueError:
        return False
    return True


def _clocking(part: Part) -> Any:
    """The PLL of a part; Amaranth is loaded for it, and for nothing that only lists targets."""
    return importlib.import_module("slipstick_rtl.fpga.clock").find_clocking(part)


def _oscillator_hz(target: Target) -> int:
    return all_boards()[target.board or ""].oscillator_hz

"""Reads nextpnr's reports: resources, clock, the slowest path."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import TargetError

CORE_CLOCK = "clocking.clock"
"""Name of the core's clock within the design of a board."""

_CARRY = re.compile(r"(_CIN_ALU_COUT)+")
"""Yosys names a cell of a carry chain by all those below it."""

_ESTIMATE = re.compile(
    r"Max frequency for clock\s+'([^']+)':\s*([\d.]+) MHz \(\w+ at ([\d.]+) MHz\)"
)

_USED = re.compile(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%")


@dataclass(frozen=True)
class Usage:
    """Amount of a resource that a design takes, and the amount that the chip has."""

    used: int
    available: int


@dataclass(frozen=True)
class Layout:
    """A placed and routed design.

    Parameters
    ----------
    fmax_mhz : float
        Of the core's clock, or of the slowest if no clock has its name.
    usage : mapping of Usage by the names of the toolchain's resources
    slowest_path : tuple of str
        From the register where the slowest path begins to the one where it ends.
    missed : tuple of str
        Other clocks that are slower than they must be, with their figures.
    share_of_others : float
        The least that another clock reaches of what it must.
    """

    fmax_mhz: float
    usage: Mapping[str, Usage]
    slowest_path: tuple[str, ...]
    missed: tuple[str, ...] = ()
    share_of_others: float = math.inf


@dataclass(frozen=True)
class Estimate:
    """Clocks that nextpnr estimates of a placement before it is routed.

    Parameters
    ----------
    fmax_mhz : float
        Of the core's clock.
    share : float
        The least that any clock reaches of what was asked for.
    """

    fmax_mhz: float
    share: float


def read_report(path: Path, resources: Mapping[str, Sequence[str]]) -> Layout:
    """The report that ``nextpnr --report`` wrote.

    Parameters
    ----------
    path : Path
    resources : mapping
        nextpnr's names of each resource; those that a chip does not have are left out.

    Raises
    ------
    TargetError
        If it cannot be read, or lacks clock or resources.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
        clocks = {
            name: (float(clock["achieved"]), float(clock["constraint"]))
            for name, clock in report["fmax"].items()
        }
        usage = {name: _usage(report["utilization"], kinds) for name, kinds in resources.items()}
        core = _core_clock({name: achieved for name, (achieved, _) in clocks.items()})
        if core is None:
            raise KeyError("fmax")
        steps = _slowest_path(report, core)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"{path} is not a report of nextpnr: {error!r}") from None
    missed = [
        f"{name} reaches {achieved:.1f} of {wanted:.1f} MHz"
        for name, (achieved, wanted) in clocks.items()
        if name != core and achieved < wanted
    ]
    others = [achieved / wanted for name, (achieved, wanted) in clocks.items() if name != core]
    least = min(others, default=math.inf)
    return Layout(clocks[core][0], usage, steps, tuple(missed), least)


def read_estimate(path: Path) -> Estimate:
    """The clocks that nextpnr estimates of a placement, from the log of one without routing.

    Raises
    ------
    TargetError
        If there is none.
    """
    text = path.read_text("utf-8", errors="replace")
    found = {name: (float(mhz), float(asked)) for name, mhz, asked in _ESTIMATE.findall(text)}
    core = _core_clock({name: mhz for name, (mhz, _) in found.items()})
    if core is None:
        raise TargetError(f"{path} has no line with the clock that nextpnr estimates")
    return Estimate(found[core][0], min(mhz / asked for mhz, asked in found.values()))


def _core_clock(clocks: Mapping[str, float]) -> str | None:
    """The core's clock, or the slowest if none has its name."""
    named = [name for name in clocks if CORE_CLOCK in name]
    return min(named or clocks, key=lambda name: clocks[name], default=None)


def _usage(utilization: Mapping[str, Any], kinds: Sequence[str]) -> Usage:
    """All kinds together; they share the places of the first."""
    present = [utilization[kind] for kind in kinds if kind in utilization]
    if not present:
        raise KeyError(", ".join(kinds))
    return Usage(sum(int(entry["used"]) for entry in present), int(present[0]["available"]))


def _slowest_path(report: Mapping[str, Any], clock: str) -> tuple[str, ...]:
    """Names along the critical path from the clock to itself, without repetitions."""
    edge = f"posedge {clock}"
    for path in report.get("critical_paths", ()):
        if path["from"] == edge and path["to"] == edge:
            cells = [step[end]["cell"] for step in path["path"] for end in ("from", "to")]
            return tuple(dict.fromkeys(_CARRY.sub(r"\1", cell) for cell in cells))
    return ()


def does_not_fit(log: str) -> str | None:
    """The resources of which a design needs more than the chip has, from nextpnr's log.

    Returns
    -------
    str or None
        Such as ``30,000 of 24,288 TRELLIS_COMB``; None if nothing is overfull.
    """
    overfull = [
        f"{int(used):,} of {int(available):,} {kind}"
        for kind, used, available in _USED.findall(log)
        if int(used) > int(available)
    ]
    return ", ".join(overfull) or None

"""What nextpnr reports: resources, clock, the slowest path."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import TargetError

RESOURCES = {
    "lut": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "bram": "DP16KD",
}
"""The names of reports, and nextpnr's on ECP5."""

_USED = re.compile(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%")


@dataclass(frozen=True)
class Usage:
    """How much of a resource a design takes, and how much the chip has."""

    used: int
    available: int


@dataclass(frozen=True)
class Layout:
    """A placed and routed design.

    Parameters
    ----------
    fmax_mhz : float
        Of the slowest clock.
    usage : mapping of Usage by the names of ``RESOURCES``
    slowest_path : tuple of str
        From the register where the slowest path begins to the one where it ends.
    """

    fmax_mhz: float
    usage: Mapping[str, Usage]
    slowest_path: tuple[str, ...]


def read_report(path: Path) -> Layout:
    """The report that ``nextpnr --report`` wrote.

    Raises
    ------
    TargetError
        If it cannot be read, or lacks clock or resources.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
        clocks = {name: float(clock["achieved"]) for name, clock in report["fmax"].items()}
        usage = {
            name: Usage(int(entry["used"]), int(entry["available"]))
            for name, entry in (
                (name, report["utilization"][kind]) for name, kind in RESOURCES.items()
            )
        }
        slowest = min(clocks, key=lambda name: clocks[name])
        steps = _slowest_path(report, slowest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"{path} is not a report of nextpnr: {error!r}") from None
    return Layout(clocks[slowest], usage, steps)


def _slowest_path(report: Mapping[str, Any], clock: str) -> tuple[str, ...]:
    """Names along the critical path from the clock to itself, without repetitions."""
    edge = f"posedge {clock}"
    for path in report.get("critical_paths", ()):
        if path["from"] == edge and path["to"] == edge:
            cells = [step[end]["cell"] for step in path["path"] for end in ("from", "to")]
            return tuple(dict.fromkeys(cells))
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

"""Reports of builds: what ``reports/build-*.json`` say, where benchmarks look for the clock."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import reports
from ..targets import Target
from .build import BARE, DEFAULT_LINK, DEFAULT_SEED, Build, asked_mhz


def report_figures(done: Build, builds: Sequence[Build] = ()) -> dict[str, Any]:
    """Collects what a report says of a build, and of all builds that it was chosen from."""
    figures = done.figures()
    if builds:
        figures["clocks"] = [
            {
                "clock_mhz": each.target.configuration.clock_hz / 1e6,
                "asked_mhz": asked_mhz(each.target),
                "fmax_mhz": round(each.layout.fmax_mhz, 2),
                "seconds": round(each.seconds, 1),
            }
            for each in builds
        ]
    return figures


@dataclass(frozen=True)
class Start:
    """Holds what place and route begins with.

    Parameters
    ----------
    seed : int
    placer : str or None
        None: the family's usual one.
    """

    seed: int = DEFAULT_SEED
    placer: str | None = None


def known_start(target: Target, link: str) -> Start:
    """Finds seed and placer with which a report says the target reached this clock.

    Without such a report they are the usual ones.
    """
    found = reports.last_build(target.configuration.fingerprint, target.name, link=link) or {}
    clock_mhz = target.configuration.clock_hz / 1e6
    reached = found.get("meets_clock") is True and found.get("clock_mhz") == clock_mhz
    seed = found.get("seed")
    if not reached or not isinstance(seed, int):
        return Start()
    # a report that names no placer is older than the choice
    return Start(seed, found.get("placer"))


def write_report(done: Build, command: str, builds: Sequence[Build] = ()) -> Path:
    """Writes ``reports/build-TARGET.json``, where benchmarks look for the clock; returns it.

    Of another link than the usual one the name has it: ``build-TARGET-LINK.json``. The report of a
    bare core stays beside its bitstream.
    """
    if done.link == BARE:
        path = done.bitstream.parent / "report.json"
        path.write_text(
            json.dumps({"command": command, **report_figures(done, builds)}, indent=2) + "\n"
        )
        return path
    link = "" if done.link == DEFAULT_LINK else f"-{done.link}"
    return reports.write(f"build-{done.target.name}{link}", command, report_figures(done, builds))

"""The tables of docs/how-to/layout.md, from the reports: ``python -m slipstick.layout.page``."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..reports import FOLDER

HEADINGS = (
    *("block", "process", "cells", "flip-flops", "nets", "die, um", "area, um²", "used"),
    *("wires, mm", "MHz before", "MHz with", "change", "vesta, MHz", "hold, ns", "skew, ns"),
    *("CPU min",),
)
POWER_HEADINGS = (
    *("block", "process", "MHz", "cycles", "mW", "clock, mW", "without wires, mW"),
    *("changes of a net per cycle", "pJ per cycle"),
)


def table(folder: Path = Path(FOLDER)) -> str:
    """Returns a table in Markdown, a row per clean report in the folder, by process and size."""
    return _table(HEADINGS, [cells(report) for report in _reports(folder)])


def power_table(folder: Path = Path(FOLDER)) -> str:
    """Returns a table in Markdown, a row per report with the power in an inference."""
    reports = [report for report in _reports(folder) if report.get("power") is not None]
    return _table(POWER_HEADINGS, [power_cells(report) for report in reports])


def _reports(folder: Path) -> list[dict[str, Any]]:
    reports = [json.loads(path.read_text("utf-8")) for path in folder.glob("layout-*.json")]
    return sorted(reports, key=lambda report: (report["pdk"], report["cells"]))


def _table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(map(_line, lines)) + "\n"


def _line(words: Any) -> str:
    return f"| {' | '.join(words)} |"


def cells(report: Mapping[str, Any]) -> Iterator[str]:
    """The words of a report's row."""
    before, after = report["fmax_before_wires_mhz"], report["fmax_mhz"]
    yield f"`{report['block']}`"
    yield report["pdk"]
    yield f"{report['cells']:,}"
    yield f"{report['flip_flops']:,}"
    yield f"{report['nets']:,}"
    yield f"{report['width_um']:g} x {report['height_um']:g}"
    yield f"{report['area_um2']:,.0f}"
    yield f"{report['utilisation']:.0%}"
    yield f"{report['wire_length_um'] / 1000:.1f}"
    yield f"{before:.0f}"
    yield f"{after:.0f}"
    yield f"{after / before - 1:+.0%}"
    yield f"{report['vesta']['fmax_mhz']:.0f}"
    yield f"{report['hold_slack_ns']:.2f}"
    yield f"{report['timing']['skew_ns']:.3f}"
    seconds = report["cpu_seconds"]
    # a layout that was taken up again after its routing has no time of its own
    yield f"{sum(seconds.values()) / 60:.1f}" if "routing" in seconds else "-"


def power_cells(report: Mapping[str, Any]) -> Iterator[str]:
    """The words of a row on power."""
    power = report["power"]
    yield f"`{report['block']}`"
    yield report["pdk"]
    yield f"{1000 / power['period_ns']:.0f}"
    yield f"{power['cycles']:,}"
    yield f"{power['dynamic_mw']:.2f}"
    yield f"{power['clock_mw']:.2f}"
    yield f"{power['dynamic_without_wires_mw']:.2f}"
    yield f"{power['changes_per_cycle']:.3f}"
    yield f"{power['pj_per_cycle']:.1f}"


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n{power_table()}")

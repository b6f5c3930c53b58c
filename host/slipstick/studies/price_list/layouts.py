"""Elements with their wires: what layouts say beside what gates alone had said."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PROCESS = "osu018"
"""Process of the layouts that are compared: the one in which every element was laid out."""
LAYOUT_COLUMNS = (
    *("element", "cells um2", "die um2", "die / cells", "wires, mm"),
    *("MHz without", "MHz with", "told too much"),
    *("area without", "area with", "clock without", "clock with"),
)
_INT8 = "int8"


def layouts(folder: Path) -> list[dict[str, Any]]:
    """Returns the reports of the elements' layouts in a folder, int8 first, then by area."""
    found = [
        json.loads(path.read_text("utf-8"))
        for path in folder.glob(f"layout-{PROCESS}-element-*.json")
    ]
    return sorted(found, key=lambda each: (each["number_format"] != _INT8, each["area_um2"]))


def layout_cells(reports: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A table's cells, in the order of ``LAYOUT_COLUMNS``: a row per report, int8's the first."""
    return [list(_cells(report, reports[0])) for report in reports]


def worst_share(reports: Sequence[Mapping[str, Any]], before: str, after: str) -> str:
    """Returns the largest relative difference between two fields, each as a share of int8's.

    It is in %, or "–" without a layout.
    """
    errors = [
        abs(_share(report, reports[0], before) / _share(report, reports[0], after) - 1)
        for report in reports
    ]
    return f"{100 * max(errors):.0f} %" if errors else "–"


def _cells(report: Mapping[str, Any], int8: Mapping[str, Any]) -> Iterator[str]:
    cells, die = report["cell_area_before_layout_um2"], report["area_um2"]
    before, after = report["fmax_before_wires_mhz"], report["fmax_mhz"]
    yield report["number_format"]
    yield f"{cells:,.0f}"
    yield f"{die:,.0f}"
    yield f"{die / cells:.2f}"
    yield f"{report['wire_length_um'] / 1000:.1f}"
    yield f"{before:.0f}"
    yield f"{after:.0f}"
    yield f"{before / after - 1:.0%}"
    for name in (
        *("cell_area_before_layout_um2", "area_um2"),
        *("fmax_before_wires_mhz", "fmax_mhz"),
    ):
        yield f"{_share(report, int8, name):.2f}"


def _share(report: Mapping[str, Any], int8: Mapping[str, Any], name: str) -> float:
    return report[name] / int8[name]

"""The page on layouts says what the reports say, and the reports are of clean layouts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from slipstick.layout.page import HEADINGS, POWER_HEADINGS, cells, power_cells, power_table, table

ROOT = Path(__file__).parents[3]
REPORTS = sorted((ROOT / "reports").glob("layout-*.json"))


@pytest.mark.parametrize("make", [table, power_table])
def test_the_tables_are_those_of_the_reports(make: Callable[[Path], str]) -> None:
    page = (ROOT / "docs" / "how-to" / "layout.md").read_text()
    assert make(ROOT / "reports") in page


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_committed_layouts_are_clean(path: Path) -> None:
    report = json.loads(path.read_text())
    assert path.stem == f"layout-{report['pdk']}-{report['block']}"
    assert (report["drc_errors"], report["lvs_matches"]) == (0, True)
    assert report["hold_slack_ns"] > 0
    for run in ("simulation", "simulation_with_delays"):
        assert report[run]["tests"] > 0 and report[run]["failures"] == []
    assert len(list(cells(report))) == len(HEADINGS)
    if (power := report.get("power")) is not None:
        assert len(list(power_cells(report))) == len(POWER_HEADINGS)
        assert power["cycles_that_differ"] == 0 < power["cycles"]
        assert 0 < power["clock_mw"] < power["dynamic_mw"]
        assert power["dynamic_without_wires_mw"] < power["dynamic_mw"]

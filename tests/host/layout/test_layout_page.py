"""The page on layouts says what the reports say, and the reports are of clean layouts."""

import json
from pathlib import Path

import pytest
from slipstick.layout.page import HEADINGS, cells, table

ROOT = Path(__file__).parents[3]
REPORTS = sorted((ROOT / "reports").glob("layout-*.json"))


def test_the_table_is_that_of_the_reports() -> None:
    page = (ROOT / "docs" / "how-to" / "layout.md").read_text()
    assert table(ROOT / "reports") in page


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_committed_layouts_are_clean(path: Path) -> None:
    report = json.loads(path.read_text())
    assert path.stem == f"layout-{report['pdk']}-{report['block']}"
    assert (report["drc_errors"], report["lvs_matches"]) == (0, True)
    assert report["hold_slack_ns"] > 0
    for run in ("simulation", "simulation_with_delays"):
        assert report[run]["tests"] > 0 and report[run]["failures"] == []
    assert len(list(cells(report))) == len(HEADINGS)

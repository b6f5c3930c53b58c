"""The table of training that knows the format repeats its report."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/training-aware.md"
REPORT = ROOT / "reports/training_aware.json"
COLUMNS = ("rounded_percent", "rounded_tuned_percent", "percent", "quantized_again_percent")


def written(figures: dict[str, float] | None) -> str:
    """The first kind of test images, as the page has it."""
    return "" if figures is None else f"{next(iter(figures.values())):.2f}"


def rows_of(entry: dict[str, Any]) -> list[str]:
    """A task's rows of the page."""
    exact, task = entry["float32"], entry["task"]
    found = []
    for name, before, after in (
        ("float32", "percent_before", "percent"),
        ("int8", "int8_percent_before", "int8_percent"),
    ):
        found.append(
            f"| {task} | {name} | {written(exact[before])} | {written(exact[after])} |  |  |"
        )
    for row in entry["formats"]:
        cells = " | ".join(written(row[column]) for column in COLUMNS)
        found.append(f"| {task} | {row['format']}, {row['bits']} bits | {cells} |")
    return found


def test_the_table_is_the_reports() -> None:
    lines = PAGE.read_text().splitlines()
    for entry in json.loads(REPORT.read_text())["tasks"]:
        for row in rows_of(entry):
            assert row in lines, row

"""Writes a command's table as a CSV file, for spreadsheets and other programs."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError

CsvFile = Annotated[
    Path | None, typer.Option("--csv", help="Write the table as a .csv file as well.")
]


def check_csv(path: Path | None) -> None:
    """Raises InputError unless the file of ``--csv`` is absent or a .csv; makes its folder."""
    if path is None:
        return
    if path.suffix != ".csv":
        raise InputError(f"--csv must be a .csv file, not {path}")
    # told before the work of hours
    path.parent.mkdir(parents=True, exist_ok=True)


def write_csv(path: Path | None, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes rows under a line of headings; None is an empty cell.

    Parameters
    ----------
    path : Path or None
        None: nothing is written.
    rows : sequence of mappings
        Values by heading. A heading that a row lacks is an empty cell there.
    """
    if path is None:
        return
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, headings, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def flat(values: Mapping[str, object], name: str = "") -> dict[str, object]:
    """Returns the numbers and texts of nested mappings by their joined names; lists are left out.

    ``{"core": {"um2": 3}}`` is ``{"core um2": 3}``.
    """
    found: dict[str, object] = {}
    for key, value in values.items():
        heading = f"{name} {key}".strip()
        if isinstance(value, Mapping):
            found |= flat(value, heading)
        elif value is None or isinstance(value, str | int | float):
            found[heading] = value
    return found

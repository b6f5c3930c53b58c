"""``slipstick study price-list``: what each number format costs and gives, measured and shown."""

import shutil
from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path
from typing import Annotated

import typer

from .. import console
from ..cluster.opening import open_cluster_pool
from ..errors import InputError
from ..plots.figures import check_png
from ..studies.price_list.kinds import SIDE
from ..studies.price_list.layouts import layouts
from ..studies.price_list.list import (
    MEASURES,
    REPORT,
    Measurement,
    PriceReport,
    measure_alone,
    wanted,
)
from ..studies.price_list.page import price_page
from ..studies.price_list.picture import draw_prices
from ..studies.price_list.table import (
    COLUMNS,
    CORE_COLUMNS,
    UNIT_COLUMNS,
    Row,
    accuracies,
    cells,
    core_cells,
    entry,
    rows,
    unit_cells,
)
from .csv_output import CsvFile, check_csv, flat, write_csv
from .options import ClusterName, Json, check_least

FOLDER = Path("build") / "price_list"


def price_list_command(
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", "-m", help=f"Measure this: {', '.join(MEASURES)}.", show_default=False
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", help="Of these rows; by default all.", show_default=False),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Measure only what the report lacks.")
    ] = False,
    side: Annotated[int, typer.Option("--side", help="Rows and columns of arrays.")] = SIDE,
    report: Annotated[Path, typer.Option("--report", help="Where measurements are.")] = REPORT,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="A .png of accuracy against area.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--markdown", help="The table as a page of Markdown.")
    ] = None,
    csv: CsvFile = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """The price list from its report; with --missing or --measure, measures first (hours)."""
    for item in measure or ():
        if item not in MEASURES:
            raise InputError(f"--measure must be one of {', '.join(MEASURES)}, not {item!r}")
    check_least("--side", side, 2)
    if plot is not None:
        # told before the work of hours
        check_png("--plot", plot)
    check_csv(csv)
    known = PriceReport(report)
    measures = measure or (MEASURES if missing or kind else ())
    todo = wanted(known, measures, kind or (), only_missing=missing, side=side)
    with console.progress("measuring", len(todo)) as advance:
        if cluster is None:
            for each in todo:
                _measure(known, each)
                advance(1)
        elif todo:
            _measure_elsewhere(known, todo, cluster, advance)
    found = rows(known, accuracies(report.parent))
    if plot is not None:
        draw_prices(plot, found)
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(price_page(found, layouts(report.parent), page, plot), "utf-8")
    write_csv(csv, [flat(entry(row)) for row in found])
    if json:
        console.print_json({"rows": [entry(row) for row in found]})
    else:
        _show(known, found)


def _show(report: PriceReport, found: list[Row]) -> None:
    tables = {
        "price list": (COLUMNS, [cells(row) for row in found]),
        "cores in standard cells": (CORE_COLUMNS, core_cells(found)),
        "units": (UNIT_COLUMNS, unit_cells(report)),
    }
    for title, (headings, body) in tables.items():
        columns = {name: "right" if place else "text" for place, name in enumerate(headings)}
        console.print_table(title, columns, body)


def _measure(report: PriceReport, measurement: Measurement) -> None:
    """Measures and records; keeps files only of what failed."""
    folder = (FOLDER / measurement.key.replace(" ", "_")).resolve()
    figures = measurement.run(folder)
    report.record(measurement, figures)
    shutil.rmtree(folder, ignore_errors=True)


def _measure_elsewhere(
    report: PriceReport, todo: list[Measurement], cluster: str, advance: Callable[[int], None]
) -> None:
    """A job per measurement; each is recorded when it is done."""
    with open_cluster_pool(cluster) as pool:
        jobs = {pool.submit(measure_alone, each): each for each in todo}
        for job in as_completed(jobs):
            report.record(jobs[job], job.result())
            advance(1)

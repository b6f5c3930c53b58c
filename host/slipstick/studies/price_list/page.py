"""The price list as a page of documentation."""

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ..lns.accuracy import TASKS
from .measures import ASKED_MHZ, PDK, ROWS
from .table import COLUMNS, CORE_COLUMNS, Row, cells, core_cells, markdown

_PICTURE = "\n![accuracy against area and energy]({path})\n"


def price_page(rows: Sequence[Row], page: Path, plot: Path | None) -> str:
    """The page's text.

    Parameters
    ----------
    rows : sequence of Row
    page : Path
        Where it will be.
    plot : Path or None
        A picture to show.
    """
    table = markdown(COLUMNS, [cells(row) for row in rows])
    frame = files("slipstick").joinpath("assets", "price_list.md").read_text("utf-8")
    networks = " and ".join(task.name for task in TASKS)
    text = frame.format(
        table=table,
        cores=markdown(CORE_COLUMNS, core_cells(rows)),
        rows=ROWS,
        mhz=ASKED_MHZ,
        pdk=PDK,
        networks=networks,
        network=TASKS[0].name,
    )
    if plot is None:
        return text
    return text + _PICTURE.format(path=Path(os.path.relpath(plot, page.parent)).as_posix())

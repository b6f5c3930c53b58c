"""The price list as a page of documentation."""

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..lns.accuracy import TASKS
from .layouts import LAYOUT_COLUMNS, PROCESS, layout_cells, worst_share
from .measures import ASKED_MHZ, PDK, ROWS
from .table import COLUMNS, CORE_COLUMNS, Row, cells, core_cells, markdown

_PICTURE = "\n![accuracy against area and energy]({path})\n"


def price_page(
    rows: Sequence[Row], layouts: Sequence[Mapping[str, Any]], page: Path, plot: Path | None
) -> str:
    """The page's text.

    Parameters
    ----------
    rows : sequence of Row
    layouts : sequence of mapping
        Reports of elements' layouts, int8's first.
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
        layouts=markdown(LAYOUT_COLUMNS, layout_cells(layouts)),
        process=PROCESS,
        worst=worst_share(layouts, "cell_area_before_layout_um2", "area_um2"),
        worst_clock=worst_share(layouts, "fmax_before_wires_mhz", "fmax_mhz"),
        rows=ROWS,
        mhz=ASKED_MHZ,
        pdk=PDK,
        networks=networks,
        network=TASKS[0].name,
    )
    if plot is None:
        return text
    return text + _PICTURE.format(path=Path(os.path.relpath(plot, page.parent)).as_posix())

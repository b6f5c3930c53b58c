"""Draws the parts that all rooflines have: axes, numbers beside points, the table of points."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..plots.figures import FAINT_INK, INK, RULE
from ..plots.number_labels import LINE_WIDTH, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_SIZE = (15.0, 8.4)
"""Inches."""
_TOP, _BOTTOM, _NOTE = 0.855, 0.085, 0.04
"""Top and bottom of the table, and height of the note below it, in shares of the figure."""

Points = Sequence[tuple[float, float]]
"""Horizontal and vertical place of each, in the units of the axes."""


def style_axes(axes: "Axes", horizontal: str, vertical: str) -> None:
    """Gives both logarithmic axes a grid, plain numbers, and their names."""
    axes.grid(color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", length=0, colors=FAINT_INK, labelsize=10)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel(horizontal, color=FAINT_INK)
    axes.set_ylabel(vertical, color=FAINT_INK)


def number_points(axes: "Axes", points: Points, roofs: Points, peak: float) -> None:
    """Writes numbers beside points, from 1; those of one place share a label.

    Parameters
    ----------
    axes : Axes
    points, roofs : sequence of (float, float)
        A label hides no point, no roof, and no line between the two.
    peak : float
        Nor the level line at this height.
    """
    box = np.array(axes.get_window_extent().bounds)
    level = axes.transData.transform((1.0, peak))[1]
    line = (np.array([box[0] + box[2] / 2, level]), np.array([box[2], LINE_WIDTH]))
    places, bars = axes.transData.transform(points), axes.transData.transform(roofs)
    for text, first, offset in labels(places, bars, line, box):
        axes.annotate(
            text,
            points[first],
            tuple(offset),
            textcoords="offset pixels",
            fontsize=9,
            color=INK,
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": FAINT_INK, "linewidth": 0.5, "shrinkB": 3},
            zorder=5,
        )


def draw_table(
    figure: "Figure",
    columns: Mapping[float, str],
    heads: Sequence[str],
    rows: Sequence[tuple[Sequence[str], str]],
    note: str,
) -> None:
    """Writes the table right of the diagram; its first column is a name.

    Parameters
    ----------
    figure : Figure
        Of ``FIGURE_SIZE``.
    columns : mapping of str by float
        How each is aligned, by its place.
    heads : sequence of str
    rows : sequence of (cells, colour)
        The colour is that of all cells but the name.
    note : str
        Below the table.
    """
    step = min(0.026, (_TOP - _BOTTOM) / (len(rows) + 1))
    size = min(9.5, 0.8 * step * FIGURE_SIZE[1] * 72)
    for number, (cells, colour) in enumerate([(heads, FAINT_INK), *rows]):
        for column, (x, align) in enumerate(columns.items()):
            ink = INK if number and column == 0 else colour
            height = _TOP - number * step
            figure.text(x, height, cells[column], ha=align, va="top", fontsize=size, color=ink)
    figure.text(min(columns), _NOTE, note, va="center", fontsize=8, color=FAINT_INK)

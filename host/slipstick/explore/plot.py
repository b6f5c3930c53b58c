"""The picture of a sweep: throughput against area, with the Pareto front."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..plots.figures import (
    BAND,
    COLOURS,
    FAINT_INK,
    INK,
    RULE,
    blank_figure,
    plain_axis,
    save_figure,
)
from ..plots.name_labels import annotate
from .explorer import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_SIZE = (11.0, 7.0)
"""Inches."""
_LONGEST_CAPTION = 150
_MOST_LABELS = 24
_LOGARITHMIC_FROM = 8.0
"""Times that the fastest is faster than the slowest."""


def draw_front(
    path: Path,
    front: Sequence[Point],
    dominated: Sequence[Point],
    labels: Sequence[str],
    *,
    title: str,
    caption: str,
) -> None:
    """Draws one PNG.

    Parameters
    ----------
    path : Path
        The file to write.
    front, dominated : sequences of Point
        As ``split_front`` gives them.
    labels : sequence of str
        Of the front's points.
    title, caption : str

    Raises
    ------
    InputError
        If there is no front, or if matplotlib is not installed.
    """
    if not front:
        raise InputError("a picture of a sweep needs at least one configuration that is feasible")
    figure = blank_figure(FIGURE_SIZE)
    figure.text(0.08, 0.955, title, fontsize=16, fontweight="bold", color=INK, va="center")
    caption = textwrap.shorten(caption, _LONGEST_CAPTION, placeholder=" ...")
    figure.text(0.08, 0.915, caption, fontsize=10, color=FAINT_INK, va="center")
    axis = figure.add_axes((0.08, 0.09, 0.89, 0.79))
    _prepare(axis, [*front, *dominated])
    axis.scatter(
        [point.area.lut for point in dominated],
        [point.rate for point in dominated],
        color=FAINT_INK,
        alpha=0.55,
        s=26,
        linewidths=0,
        label=f"dominated: {len(dominated)}",
        zorder=3,
    )
    area, rate = [point.area.lut for point in front], [point.rate for point in front]
    # what the front offers from one point's area on, until the next one's
    axis.step(area, rate, where="post", color=COLOURS["matrix"], linewidth=1.4, zorder=4)
    axis.scatter(
        area,
        rate,
        color=COLOURS["post"],
        edgecolors=INK,
        linewidths=0.7,
        s=58,
        label=f"Pareto front: {len(front)}",
        zorder=5,
    )
    _label(axis, front, labels)
    axis.legend(loc="lower right", frameon=False, fontsize=10, labelcolor=INK)
    save_figure(figure, path)


def _prepare(axis: "Axes", points: Sequence[Point]) -> None:
    from matplotlib.ticker import LogLocator

    axis.set_facecolor(BAND)
    rates = [point.rate for point in points]
    if max(rates) > _LOGARITHMIC_FROM * min(rates):
        axis.set_yscale("log", subs=())
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_ylim(min(rates) / 1.3, max(rates) * 1.5)
    else:
        axis.set_ylim(0, max(rates) * 1.15)
    largest = max(point.area.lut for point in points)
    smallest = min(point.area.lut for point in points)
    margin = max(largest - smallest, largest * 0.2) * 0.08
    # names stand to the left of their points
    axis.set_xlim(smallest - 2 * margin, largest + margin)
    axis.grid(color=RULE, linewidth=0.8, zorder=1)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plain_axis(axis)
    axis.set_xlabel("look-up tables (estimated)", fontsize=10, color=FAINT_INK)
    axis.set_ylabel("inferences per second, geometric mean", fontsize=10, color=FAINT_INK)


def _label(axis: "Axes", front: Sequence[Point], labels: Sequence[str]) -> None:
    """Names of the front's points; of many, only so many, evenly chosen, with the last one."""
    step = -(-len(front) // _MOST_LABELS)
    named: dict[tuple[float, float], str] = {}
    for number, (point, label) in enumerate(zip(front, labels, strict=True)):
        if number % step == 0 or number == len(front) - 1:
            # one name for those that stand in the same place
            named.setdefault((point.area.lut, point.rate), label)
    annotate(axis, named)

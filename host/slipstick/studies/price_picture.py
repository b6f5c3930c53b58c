"""The picture of the price list: accuracy against the area of an element."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..picture_labels import annotate
from ..pictures import BAND, COLOURS, FAINT_INK, INK, RIGHT, RULE, WRONG, blank_figure, save_figure
from .lns_accuracy import TASKS
from .price_kinds import LOG, Kind
from .price_table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_SIZE = (14.0, 7.0)
"""Inches."""

_SERIES: Mapping[str, tuple[str, Callable[[Kind], bool]]] = {
    "int8": (INK, lambda kind: kind.lns is None),
    "logarithmic products, linear sums": (
        COLOURS["matrix"],
        lambda kind: kind.lns is not None and kind.sums != LOG and kind.in_core,
    ),
    "the same, wider than a core's": (RIGHT, lambda kind: kind.sums != LOG and not kind.in_core),
    "logarithmic sums as well": (WRONG, lambda kind: kind.sums == LOG),
}
"""Their colours, and which kinds are in them."""


def draw_prices(path: Path, rows: Sequence[Row]) -> None:
    """Draws one PNG: accuracy on the first network against look-up tables of an element.

    Raises
    ------
    InputError
        If the file is no .png, no element has both, or matplotlib is not installed.
    """
    if path.suffix != ".png":
        raise InputError(f"--plot must be a .png file, not {path}")
    network = TASKS[0].name
    points = {
        row.kind: (float(row.element["lut"]), row.percent[network])
        for row in rows
        if "lut" in row.element and network in row.percent
    }
    if not points:
        raise InputError("a picture of prices needs an element with its area and its accuracy")
    figure = blank_figure(FIGURE_SIZE)
    figure.text(0.06, 0.945, "What a number costs and gives", fontsize=16, fontweight="bold")
    caption = f"right answers of {network} against an element's area on an ECP5"
    figure.text(0.06, 0.905, caption, fontsize=10, color=FAINT_INK)
    axis = figure.add_axes((0.06, 0.1, 0.92, 0.77))
    _draw(axis, points)
    axis.set_xlabel("look-up tables of an element", fontsize=10, color=FAINT_INK)
    axis.set_ylabel("right answers, %", fontsize=10, color=FAINT_INK)
    save_figure(figure, path)


def _draw(axis: "Axes", points: Mapping[Kind, tuple[float, float]]) -> None:
    axis.set_facecolor(BAND)
    axis.set_xscale("log")
    for label, (colour, belongs) in _SERIES.items():
        own = [place for kind, place in points.items() if belongs(kind)]
        axis.scatter(*zip(*own, strict=True) if own else ([], []), color=colour, label=label, s=46)
    areas = [area for area, _ in points.values()]
    axis.set_xlim(min(areas) / 1.4, max(areas) * 1.4)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.xaxis.set_minor_formatter(lambda value, _: "")
    axis.set_xticks([20, 50, 100, 200, 500, 1000])
    axis.grid(color=RULE, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(length=0, which="both", colors=FAINT_INK, labelsize=9)
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.legend(loc="lower right", frameon=False, fontsize=10, labelcolor=INK)
    annotate(axis, {place: _short(kind) for kind, place in points.items()})


def _short(kind: Kind) -> str:
    return kind.name.removeprefix("lns").removesuffix(" log sums")

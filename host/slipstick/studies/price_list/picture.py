"""The picture of the price list: accuracy against the area of an element, and against energies."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError
from ...plots.figures import (
    BAND,
    COLOURS,
    FAINT_INK,
    INK,
    RIGHT,
    RULE,
    WRONG,
    blank_figure,
    check_png,
    plain_axis,
    save_figure,
)
from ...plots.name_labels import annotate
from ..lns.accuracy import TASKS
from .kinds import LOG, SIDE, Kind
from .measures import PDK
from .table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_SIZE = (14.0, 7.0)
"""Inches."""

LOWEST_PERCENT = 65.0
"""Lowest accuracy that is shown: the rest would press the others together."""

_CLOSE = 4
"""Times the least, up to which a scale is linear."""

_TICKS = [step * 10**power for power in range(5) for step in (1, 2, 5)]

_SERIES: Mapping[str, tuple[str, Callable[[Kind], bool]]] = {
    "int8": (INK, lambda kind: kind.lns is None),
    "logarithmic products, linear sums": (
        COLOURS["matrix"],
        lambda kind: kind.lns is not None and kind.sums != LOG and kind.in_core,
    ),
    "the same, wider than a core's": (
        RIGHT,
        lambda kind: kind.sums != LOG and not kind.in_core and not kind.linear_activations,
    ),
    "logarithmic weights, activations of int8": (
        COLOURS["post"],
        lambda kind: kind.linear_activations,
    ),
    "logarithmic sums as well": (WRONG, lambda kind: kind.sums == LOG),
}
"""Their colours, and which kinds are in them."""


_ENERGY = f"uJ of an inference, core of {SIDE}x{SIDE} elements in {PDK}"

_PANELS: Mapping[str, Callable[[Row], float | None]] = {
    "look-up tables of an ECP5": lambda row: row.element.get("lut"),
    f"standard cells of {PDK}, um2": lambda row: row.gates.get("um2"),
    f"picojoules of a multiply-accumulate in {PDK}": lambda row: row.power.get("mac_pj"),
    _ENERGY: lambda row: row.core.get("inference_uj"),
}
"""One below the other, those that anything was measured of."""

Place = tuple[float, float]
"""Place of a row: its area or energy, and its accuracy."""


def draw_prices(path: Path, rows: Sequence[Row]) -> None:
    """Draws one PNG: accuracy on the first network against areas and energy.

    Raises
    ------
    InputError
        If the file is no .png, no element has both, or matplotlib is not installed.
    """
    check_png("--plot", path)
    panels = {label: _places(rows, area) for label, area in _PANELS.items()}
    panels = {label: places for label, places in panels.items() if places}
    if not panels:
        raise InputError("a picture of prices needs an element with its area and its accuracy")
    figure = blank_figure((FIGURE_SIZE[0], FIGURE_SIZE[1] * len(panels)))
    height = 1 / len(panels)
    for place, (label, places) in enumerate(panels.items()):
        bottom = 1 - height * (place + 1)
        axis = figure.add_axes((0.06, bottom + 0.1 * height, 0.92, 0.77 * height))
        _draw(axis, places, label)
        if place == 0:
            axis.legend(loc="lower right", frameon=False, fontsize=10, labelcolor=INK)
    top = 1 - 0.055 * height
    figure.text(0.06, top, "What a number costs and gives", fontsize=16, fontweight="bold")
    caption = (
        f"right answers of {TASKS[0].name} in % against an element's area, its energy, and that of"
        f" an inference; what has less than {LOWEST_PERCENT:g} % is left out"
    )
    figure.text(0.06, top - 0.04 * height, caption, fontsize=10, color=FAINT_INK)
    save_figure(figure, path)


def _places(rows: Sequence[Row], area: Callable[[Row], float | None]) -> list[tuple[Row, Place]]:
    """Rows that have both figures, the accuracy not too low, with their places."""
    network = TASKS[0].name
    return [
        (row, (float(found), row.percent[network]))
        for row in rows
        if (found := area(row)) is not None and row.percent.get(network, 0) >= LOWEST_PERCENT
    ]


def _draw(axis: "Axes", places: Sequence[tuple[Row, Place]], label: str) -> None:
    axis.set_facecolor(BAND)
    for name, (colour, belongs) in _SERIES.items():
        own = [place for row, place in places if belongs(row.kind)]
        axis.scatter(*zip(*own, strict=True) if own else ([], []), color=colour, label=name, s=46)
    _scale(axis, [area for _, (area, _) in places])
    axis.grid(color=RULE, linewidth=0.8)
    axis.set_axisbelow(True)
    # for the names of the highest and the lowest
    axis.margins(y=0.12)
    plain_axis(axis)
    axis.set_xlabel(label, fontsize=10, color=FAINT_INK)
    blocks = label == next(iter(_PANELS))
    annotate(axis, {place: _name(row, blocks=blocks) for row, place in places})


def _scale(axis: "Axes", areas: Sequence[float]) -> None:
    """A logarithmic scale, unless all lie close together."""
    lowest, highest = min(areas), max(areas)
    if highest > _CLOSE * lowest:
        axis.set_xscale("log")
        axis.set_xticks([tick for tick in _TICKS if lowest <= tick <= highest])
    axis.set_xlim(lowest / 1.5, highest * 1.3)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.xaxis.set_minor_formatter(lambda value, _: "")


def _name(row: Row, *, blocks: bool) -> str:
    """The format, and on an FPGA the blocks that an element has besides."""
    # the rest is told by the colour
    name = row.kind.name.removeprefix("int8 x ").removeprefix("lns").removesuffix(" log sums")
    if not blocks:
        return name
    counts = {"DSP": row.element.get("dsp"), "EBR": row.element.get("bram")}
    return name + "".join(f" + {count:.2g} {block}" for block, count in counts.items() if count)

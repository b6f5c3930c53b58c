"""A DRAM's roofline: what each stretch of a list computes, under what the DRAM's rate allows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

from ..errors import InputError
from ..plots.figures import FAINT_INK, INK, PAPER, RULE, blank_figure, save_figure
from ..plots.number_labels import LINE_WIDTH, labels
from ..program.steps import RunStep
from .dram import DramCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_SIZE = (15.0, 8.4)
"""Inches."""
COLOURS = {"core": "#2f6fb3", "DRAM": "#8250df"}
"""Of what a stretch's roof is."""
_LONGEST_NAME = 40


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """All runs of the same layers, each with the time to the next run and what is moved then.

    Parameters
    ----------
    layers : tuple of int
        Their numbers.
    macs : int
        Multiply-accumulates.
    cycles : int
        More than 0.
    words : int
        Of DRAM. Weights may be moved for a later stretch.
    """

    layers: tuple[int, ...]
    macs: float
    cycles: int
    words: int

    @property
    def intensity(self) -> float:
        """Multiply-accumulates per byte of DRAM."""
        return self.macs / (self.words * WORD_BYTES)

    @property
    def rate(self) -> float:
        """Multiply-accumulates per cycle."""
        return self.macs / self.cycles

    def share_of_dram(self, hardware: Configuration) -> float:
        """Of the chip's peak rate."""
        return self.words * WORD_BYTES / self.cycles / hardware.dram_bytes_per_cycle

    def bound(self, hardware: Configuration) -> str:
        """Which roof is the lower one: a key of ``COLOURS``."""
        ridge = hardware.macs_per_cycle / hardware.dram_bytes_per_cycle
        return "core" if self.intensity > ridge else "DRAM"


def stretches(cost: DramCost) -> list[Stretch]:
    """The stretches that multiply and move something, in the order of their first runs."""
    sums: dict[tuple[int, ...], list[float]] = {}
    shares = _shares_of_layers(cost)
    for layers, run, cycles, words in _intervals(cost):
        total = sums.setdefault(layers, [0.0, 0, 0])
        total[0] += sum(shares[run].values())
        total[1] += cycles
        total[2] += words
    made = [
        Stretch(layers=layers, macs=macs, cycles=int(cycles), words=int(words))
        for layers, (macs, cycles, words) in sums.items()
    ]
    return [each for each in made if each.macs and each.cycles and each.words]


def _shares_of_layers(cost: DramCost) -> list[dict[int, float]]:
    """Of each run, its layers' multiply-accumulates: in the shares of its instructions."""
    owned = list[dict[int, int]]()
    for step in cost.program.steps:
        if isinstance(step, RunStep):
            counts = dict[int, int]()
            for layer, count in step.owners[0]:
                counts[layer] = counts.get(layer, 0) + count
            owned.append(counts)
    totals = dict[int, int]()
    for counts in owned:
        for layer, count in counts.items():
            totals[layer] = totals.get(layer, 0) + count
    macs = [layer.macs * cost.program.batch for layer in cost.program.layers]
    return [
        {layer: macs[layer] * count / totals[layer] for layer, count in counts.items()}
        for counts in owned
    ]


def _intervals(cost: DramCost) -> Iterator[tuple[tuple[int, ...], int, int, int]]:
    """Of each run: its layers, its number, the cycles to the next run, and words moved in them."""
    runs = [step for step in cost.program.steps if isinstance(step, RunStep)]
    spans = cost.timeline.spans
    begins = [span for span in spans if span.kind == "run"]
    # what is moved before the first run is moved for it
    edges = [0, *(span.begin for span in begins[1:]), cost.timeline.end]
    moved = [span for span in spans if span.words]
    numbers = np.searchsorted(edges[1:-1], [span.begin for span in moved], side="right")
    words = np.bincount(numbers, [span.words for span in moved], len(begins))
    for index, span in enumerate(begins):
        owners = runs[span.run].owners
        layers = tuple(sorted({layer for owned in owners for layer, _ in owned}))
        yield layers, span.run, edges[index + 1] - edges[index], int(words[index])


def draw_dram_roofline(path: Path, cost: DramCost, target: str) -> None:
    """Draws a PNG, both axes logarithmic; all as the list's timeline predicts it.

    Right, multiply-accumulates per byte of DRAM; up, multiply-accumulates per cycle. The roof is
    the DRAM's peak rate and, right of the ridge, the array's peak P x R x C.

    Parameters
    ----------
    path : Path
        Its folder is made.
    cost : DramCost
    target : str
        For the title.

    Raises
    ------
    InputError
        If nothing multiplies, or matplotlib is not installed.
    """
    points = stretches(cost)
    if not points:
        raise InputError(f"{cost.program.name} must have layers that multiply on the device")
    figure = blank_figure(FIGURE_SIZE)
    axes = figure.add_axes((0.065, 0.085, 0.555, 0.77))
    _draw_title(figure, cost, target)
    _draw_roof(axes, cost.program.hardware, points)
    _draw_points(axes, cost.program.hardware, points)
    _draw_table(figure, cost, points)
    save_figure(figure, path)


def _draw_title(figure: "Figure", cost: DramCost, target: str) -> None:
    entry, hardware = cost.entry(), cost.program.hardware
    images = "an inference" if cost.program.batch == 1 else f"{cost.program.batch} images"
    title = f"{cost.program.name} on {target}: {images} from DRAM"
    figure.text(0.065, 0.945, title, fontsize=17, fontweight="bold", color=INK)
    rate = hardware.dram_bytes_per_cycle * hardware.clock_hz / 1e6
    text = (
        f"{entry['inferences_per_second']:.1f} inferences per second,"
        f" {entry['dram_share_of_peak']:.0%} of the DRAM's {rate:.0f} MB/s; predicted"
    )
    figure.text(0.065, 0.905, text, fontsize=11, color=FAINT_INK)


def _draw_roof(axes: "Axes", hardware: Configuration, points: Sequence[Stretch]) -> None:
    peak, slope = hardware.macs_per_cycle, hardware.dram_bytes_per_cycle
    ridge = peak / slope
    low = min(0.5 * min(point.intensity for point in points), 0.5 * ridge)
    high = max(2 * max(point.intensity for point in points), 4 * ridge)
    bottom = 0.4 * min(*(point.rate for point in points), low * slope)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, 2.2 * peak))
    axes.plot([low, ridge, high], [low * slope, peak, peak], color=INK, linewidth=2, zorder=2)
    text = {"fontsize": 10, "color": INK, "va": "bottom", "textcoords": "offset points"}
    axes.annotate(f"peak {hardware.shape} = {peak}", (high, peak), (-4, 8), ha="right", **text)
    place = (low * (ridge / low) ** 0.5, slope * low * (ridge / low) ** 0.5)
    axes.annotate(f"DRAM: {slope:g} bytes per cycle", place, (-10, 8), ha="right", **text)
    axes.grid(color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", length=0, colors=FAINT_INK, labelsize=10)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("multiply-accumulates per byte of DRAM", color=FAINT_INK)
    axes.set_ylabel("multiply-accumulates per cycle", color=FAINT_INK)


def _draw_points(axes: "Axes", hardware: Configuration, points: Sequence[Stretch]) -> None:
    for bound, colour in COLOURS.items():
        own = [point for point in points if point.bound(hardware) == bound]
        axes.plot(
            [p.intensity for p in own], [p.rate for p in own], "o", color=colour, markersize=7,
            markeredgecolor=PAPER, markeredgewidth=0.6, label=f"lower roof: {bound}", zorder=4,
        )  # fmt: skip
    axes.legend(loc="lower right", fontsize=10, frameon=False, labelcolor=INK)
    places = axes.transData.transform([(p.intensity, p.rate) for p in points])
    box = np.array(axes.get_window_extent().bounds)
    peak = axes.transData.transform((1.0, hardware.macs_per_cycle))[1]
    line = (np.array([box[0] + box[2] / 2, peak]), np.array([box[2], LINE_WIDTH]))
    for text, first, offset in labels(places, places, line, box):
        axes.annotate(
            text, (points[first].intensity, points[first].rate), tuple(offset),
            textcoords="offset pixels", fontsize=9, color=INK, ha="center", va="center",
            arrowprops={"arrowstyle": "-", "color": FAINT_INK, "linewidth": 0.5, "shrinkB": 3},
            zorder=5,
        )  # fmt: skip


def _draw_table(figure: "Figure", cost: DramCost, points: Sequence[Stretch]) -> None:
    """The stretches by number: layers, share of time, of the core's peak and of the DRAM's."""
    hardware, layers = cost.program.hardware, cost.program.layers
    top, bottom = 0.855, 0.085
    columns = {0.64: "left", 0.865: "right", 0.925: "right", 0.985: "right"}
    step = min(0.026, (top - bottom) / (len(points) + 1))
    size = min(9.5, 0.8 * step * FIGURE_SIZE[1] * 72)
    for row, point in enumerate([None, *points]):
        cells = ("layers", "time", "of core", "of DRAM")
        colour = FAINT_INK
        if point is not None:
            names = [layers[number].name for number in point.layers if layers[number].macs]
            text = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            cells = (
                f"{row}  {_shorten(text)}",
                f"{point.cycles / cost.timeline.end:.1%}",
                f"{point.rate / hardware.macs_per_cycle:.0%}",
                f"{point.share_of_dram(hardware):.0%}",
            )
            colour = COLOURS[point.bound(hardware)]
        for (x, align), cell in zip(columns.items(), cells, strict=True):
            ink = INK if point is not None and align == "left" else colour
            figure.text(x, top - row * step, cell, ha=align, va="top", fontsize=size, color=ink)
    note = "from a run's begin to the next one's; constants may be moved for a later run"
    figure.text(0.64, 0.04, note, va="center", fontsize=8, color=FAINT_INK)


def _shorten(name: str) -> str:
    """Both ends of a long name."""
    if len(name) <= _LONGEST_NAME:
        return name
    return name[: _LONGEST_NAME // 2] + "…" + name[1 - _LONGEST_NAME // 2 :]

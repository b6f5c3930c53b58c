"""A DRAM's roofline: what each stretch of a list computes, under what the DRAM's rate allows."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

from ..errors import InputError
from ..plots.figures import FAINT_INK, INK, PAPER, blank_figure, save_figure, shorten
from ..program.steps import RunStep
from .dram import DramCost
from .roofline_drawing import FIGURE_SIZE, draw_table, number_points, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"core": "#2f6fb3", "DRAM": "#8250df"}
"""Colours of stretches, by the unit that sets their roof."""
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
        """Returns which share of the DRAM's peak rate is used."""
        return self.words * WORD_BYTES / self.cycles / hardware.dram_bytes_per_cycle

    def bound(self, hardware: Configuration) -> str:
        """Names the lower roof, a key of ``COLOURS``."""
        ridge = hardware.macs_per_cycle / hardware.dram_bytes_per_cycle
        return "core" if self.intensity > ridge else "DRAM"


def stretches(cost: DramCost) -> list[Stretch]:
    """The stretches that multiply and move something, in the order of their first runs."""
    sums: dict[tuple[int, ...], list[float]] = {}
    macs_of_runs = _macs_of_runs(cost)
    for layers, run, cycles, words in _intervals(cost):
        total = sums.setdefault(layers, [0.0, 0, 0])
        total[0] += macs_of_runs[run]
        total[1] += cycles
        total[2] += words
    made = [
        Stretch(layers=layers, macs=macs, cycles=int(cycles), words=int(words))
        for layers, (macs, cycles, words) in sums.items()
    ]
    return [each for each in made if each.macs and each.cycles and each.words]


def _macs_of_runs(cost: DramCost) -> list[float]:
    """Shares out each layer's multiply-accumulates to its runs, as its instructions are."""
    runs = [step for step in cost.program.steps if isinstance(step, RunStep)]
    totals = Counter[int]()
    for layer, count in itertools.chain.from_iterable(run.owners[0] for run in runs):
        totals[layer] += count
    layers = cost.program.layers
    shares = (
        sum(layers[layer].macs * count / totals[layer] for layer, count in run.owners[0])
        for run in runs
    )
    return [cost.program.batch * share for share in shares]


def _intervals(cost: DramCost) -> Iterator[tuple[tuple[int, ...], int, int, int]]:
    """Yields layers and number of each run, the cycles to the next one, and words moved in them."""
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
    title = f"{cost.program.name} on {target}: {cost.images} from DRAM"
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
    style_axes(axes, "multiply-accumulates per byte of DRAM", "multiply-accumulates per cycle")


def _draw_points(axes: "Axes", hardware: Configuration, points: Sequence[Stretch]) -> None:
    for bound, colour in COLOURS.items():
        own = [point for point in points if point.bound(hardware) == bound]
        axes.plot(
            [p.intensity for p in own], [p.rate for p in own], "o", color=colour, markersize=7,
            markeredgecolor=PAPER, markeredgewidth=0.6, label=f"lower roof: {bound}", zorder=4,
        )  # fmt: skip
    axes.legend(loc="lower right", fontsize=10, frameon=False, labelcolor=INK)
    places = [(point.intensity, point.rate) for point in points]
    number_points(axes, places, places, hardware.macs_per_cycle)


def _draw_table(figure: "Figure", cost: DramCost, points: Sequence[Stretch]) -> None:
    """The stretches by number: layers, share of time, of the core's peak and of the DRAM's."""
    hardware, layers = cost.program.hardware, cost.program.layers
    rows = list[tuple[Sequence[str], str]]()
    for number, point in enumerate(points, start=1):
        names = [layers[layer].name for layer in point.layers if layers[layer].macs]
        text = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        cells = (
            f"{number}  {shorten(text, _LONGEST_NAME)}",
            f"{point.cycles / cost.timeline.end:.1%}",
            f"{point.rate / hardware.macs_per_cycle:.0%}",
            f"{point.share_of_dram(hardware):.0%}",
        )
        rows.append((cells, COLOURS[point.bound(hardware)]))
    draw_table(
        figure,
        {0.64: "left", 0.865: "right", 0.925: "right", 0.985: "right"},
        ("layers", "time", "of core", "of DRAM"),
        rows,
        "from a run's begin to the next one's; constants may be moved for a later run",
    )

"""The picture of a demonstration: images with guesses, and what each unit did in which cycle."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

UNITS = ("matrix", "post")
UNIT_NAMES = {"matrix": "matrix unit", "post": "post-processor"}

PAPER = "#ffffff"
INK = "#1f2328"
FAINT_INK = "#6e7781"
RULE = "#d8dee4"
BAND = "#f6f8fa"
RIGHT = "#1a7f37"
WRONG = "#cf222e"
COLOURS = {"matrix": "#2f6fb3", "post": "#e8912d"}

FIGURE_SIZE = (16.0, 9.0)
"""Inches."""
DOTS_PER_INCH = 110
LONGEST_NAME = 20
LONGEST_LABEL_LINE = 18
LANE_HEIGHT = 0.34
"""Height of a lane in a layer's row, which is 1 high and holds a lane for each unit."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of cycles that a unit spent on a layer.

    Parameters
    ----------
    name : str
        The layer; a layer may have many spans.
    unit : str
        One of ``UNITS``.
    start, end : int
        Cycles, the end exclusive.

    Raises
    ------
    InputError
        If the unit is unknown, or the span ends before it starts or starts below cycle 0.
    """

    name: str
    unit: str
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError(f"layer {self.name}: unit must be one of {UNITS}, not {self.unit!r}")
        if not 0 <= self.start <= self.end:
            raise InputError(
                f"layer {self.name}: cycles must run from 0 upwards, not {self.start}..{self.end}"
            )


def draw_demo(
    path: str | Path,
    images: np.ndarray,
    guesses: Sequence[Any] | np.ndarray,
    truths: Sequence[Any] | np.ndarray,
    spans: Sequence[Span],
    *,
    utilisation: Mapping[str, float] | None = None,
    title: str = "Slipstick",
    facts: Mapping[str, str] | None = None,
    caption: str | None = None,
) -> None:
    """Draws one PNG: on the left the images with guesses, on the right the timeline of one run.

    Parameters
    ----------
    path : str or Path
        The file to write; its folder is made.
    images : array, shape (images, height, width), or with 1 or 3 channels
        Any numbers, codes included: the set's least is black, its greatest white. About 20 to 80
        images look well.
    guesses, truths : sequences
        What the network said and what is true, one an image: numbers or names of classes.
    spans : sequence of Span
        Layers appear in the order of their first span here.
    utilisation : mapping of str to float, optional
        Share of peak MACs per layer, 0..1; layers without one get a dash.
    title : str
    facts : mapping of str to str, optional
        Figures for the head of the picture, a label each, as ``{"accuracy": "98.3 %"}``.
    caption : str, optional
        The line above the images; by default how many of those shown are right.

    Raises
    ------
    InputError
        If there are no images or spans, if the numbers of images, guesses and truths differ, if
        an image is none, or if matplotlib is not installed.
    """
    pictures = _displayable(np.asarray(images))
    if not len(pictures) == len(guesses) == len(truths):
        raise InputError(
            f"{len(pictures)} images need as many guesses and truths,"
            f" not {len(guesses)} and {len(truths)}"
        )
    if not spans:
        raise InputError("a timeline needs at least one span")
    figure = blank_figure(FIGURE_SIZE)
    grid = figure.add_gridspec(2, 2, width_ratios=[0.45, 0.55], height_ratios=[0.13, 0.87])
    head = figure.add_subfigure(grid[0, :])
    left, right = figure.add_subfigure(grid[1, 0]), figure.add_subfigure(grid[1, 1])
    _draw_head(head, title, facts or {})
    right_count = sum(bool(g == t) for g, t in zip(guesses, truths, strict=True))
    caption = caption or f"{right_count} of these {len(pictures)} are right (green)"
    _draw_images(left, pictures, list(guesses), list(truths), caption)
    _draw_timeline(right, spans, utilisation or {})
    save_figure(figure, Path(path))


def check_png(option: str, path: Path) -> None:
    """InputError unless the picture that an option names is a .png."""
    if path.suffix != ".png":
        raise InputError(f"{option} must be a .png file, not {path}")


def plain_axis(axis: "Axes") -> None:
    """Faint numbers and names of a diagram, without ticks and frame."""
    axis.tick_params(length=0, which="both", colors=FAINT_INK, labelsize=9)
    for spine in axis.spines.values():
        spine.set_visible(False)


def blank_figure(inches: tuple[float, float]) -> "Figure":
    """A picture's empty sheet, so wide and high; InputError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install matplotlib") from error
    return Figure(figsize=inches, dpi=DOTS_PER_INCH, facecolor=PAPER)


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes a picture as PNG; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", facecolor=PAPER, metadata={"Software": "Slipstick"})


def _displayable(images: np.ndarray) -> np.ndarray:
    """Images scaled to 0..1, of shape (images, height, width) or (images, height, width, 3)."""
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.size == 0 or not (images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)):
        raise InputError(
            "images must have the shape (images, height, width), or with 1 or 3 channels,"
            f" not {images.shape}"
        )
    if not np.isfinite(images).all():
        raise InputError("images must be finite numbers")
    low, high = float(images.min()), float(images.max())
    return (images - low) / max(high - low, 1e-9)


def _draw_head(head: "SubFigure", title: str, facts: Mapping[str, str]) -> None:
    head.text(0.025, 0.5, title, fontsize=19, fontweight="bold", color=INK, va="center")
    # the facts stand over the timeline, side by side
    start, end = 0.48, 0.985
    for index, (label, value) in enumerate(facts.items()):
        x = start + (end - start) * index / len(facts)
        head.text(x, 0.68, value, fontsize=17, fontweight="bold", color=INK, va="center")
        lines = textwrap.fill(label, LONGEST_LABEL_LINE, break_on_hyphens=False)
        head.text(x, 0.42, lines, fontsize=10, color=FAINT_INK, va="top", linespacing=1.3)


def _draw_images(
    area: "SubFigure", pictures: np.ndarray, guesses: list[Any], truths: list[Any], caption: str
) -> None:
    area.text(0.055, 0.965, caption, fontsize=12, color=INK, va="center")
    # the area is about as wide as high, and a cell higher than wide: its guess stands below
    columns = max(1, round(np.sqrt(len(pictures) * 1.1)))
    rows = -(-len(pictures) // columns)
    axes = area.subplots(rows, columns, squeeze=False)
    area.subplots_adjust(left=0.055, right=0.95, top=0.94, bottom=0.05, wspace=0.2, hspace=0.45)
    size = float(np.clip(90 / columns, 7, 13))
    for index, axis in enumerate(axes.flat):
        axis.set_xticks([])
        axis.set_yticks([])
        if index >= len(pictures):
            axis.set_visible(False)
            continue
        right = bool(guesses[index] == truths[index])
        colour = RIGHT if right else WRONG
        axis.imshow(pictures[index], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        for spine in axis.spines.values():
            spine.set(color=colour, linewidth=1.2 if right else 3.0)
        text = f"{guesses[index]}" if right else f"{guesses[index]}, is {truths[index]}"
        axis.set_xlabel(text, fontsize=size, fontweight="bold", color=colour, labelpad=3)


def _draw_timeline(
    area: "SubFigure", spans: Sequence[Span], utilisation: Mapping[str, float]
) -> None:
    names = list(dict.fromkeys(span.name for span in spans))
    time, share = area.subplots(1, 2, sharey=True, width_ratios=[0.8, 0.2])
    area.subplots_adjust(left=0.17, right=0.965, top=0.92, bottom=0.09, wspace=0.04)
    for axis in (time, share):
        axis.set_facecolor(PAPER)
        plain_axis(axis)
        for row in range(0, len(names), 2):
            axis.axhspan(row - 0.5, row + 0.5, color=BAND, zorder=0)
    time.set_ylim(len(names) - 0.5, -0.5)
    _draw_spans(time, names, spans)
    _draw_shares(share, names, utilisation)


def _draw_spans(axis: "Axes", names: list[str], spans: Sequence[Span]) -> None:
    end = max(span.end for span in spans)
    for lane, unit in enumerate(UNITS):
        own = [span for span in spans if span.unit == unit]
        axis.barh(
            [names.index(span.name) + (lane - 0.5) * LANE_HEIGHT for span in own],
            [span.end - span.start for span in own],
            left=[span.start for span in own],
            height=LANE_HEIGHT,
            color=COLOURS[unit],
            # the shortest span must stay visible
            edgecolor=COLOURS[unit],
            linewidth=0.6,
            label=UNIT_NAMES[unit],
            zorder=3,
        )
    axis.set_xlim(0, end * 1.01)
    axis.grid(axis="x", color=RULE, linewidth=0.8, zorder=1)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.set_xlabel("clock cycles of one inference", fontsize=10, color=FAINT_INK)
    labels = [shorten(name, LONGEST_NAME) for name in names]
    # the rows bound the size of the letters, and so does the margin to the left of the axis
    size = float(np.clip(min(240 / len(names), 160 / max(map(len, labels))), 6, 11))
    axis.set_yticks(range(len(names)), labels)
    axis.tick_params(axis="y", labelsize=size, labelcolor=INK, pad=8)
    axis.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=len(UNITS),
        frameon=False,
        fontsize=10,
        handlelength=1.2,
        labelcolor=INK,
    )


def _draw_shares(axis: "Axes", names: list[str], utilisation: Mapping[str, float]) -> None:
    axis.set_title("share of peak MACs", fontsize=10, color=FAINT_INK, pad=10)
    axis.set_xlim(0, 1)
    axis.set_xticks([])
    axis.tick_params(axis="y", labelleft=False)
    size = float(np.clip(240 / len(names), 6, 10))
    for row, name in enumerate(names):
        share = utilisation.get(name)
        text = "–" if share is None else f"{share:.0%}"
        if share is not None:
            axis.barh(row, 0.58, left=0.05, height=LANE_HEIGHT, color=RULE, zorder=2)
            filled = 0.58 * min(max(share, 0), 1)
            axis.barh(row, filled, left=0.05, height=LANE_HEIGHT, color=COLOURS["matrix"], zorder=3)
        axis.text(0.97, row, text, fontsize=size, color=INK, ha="right", va="center")


def shorten(name: str, longest: int) -> str:
    """Returns a name, or both ends of one that has more characters than ``longest``."""
    if len(name) <= longest:
        return name
    return name[: longest // 2] + "…" + name[1 - longest // 2 :]

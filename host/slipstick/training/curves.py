"""The picture of a training: loss and accuracy after each epoch."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
from .checkpoints import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_SIZE = (11.0, 5.0)
"""Inches."""
_LEARNED, _TESTED = COLOURS["matrix"], COLOURS["post"]


def draw_curves(path: Path, history: History, *, title: str, caption: str) -> None:
    """Draws one PNG.

    Parameters
    ----------
    path : path
    history : History
        Of at least one epoch.
    title, caption : str

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    figure = blank_figure(FIGURE_SIZE)
    figure.text(0.06, 0.945, title, fontsize=16, fontweight="bold", color=INK, va="center")
    figure.text(0.06, 0.885, caption, fontsize=10, color=FAINT_INK, va="center")
    left = figure.add_axes((0.06, 0.11, 0.42, 0.66))
    right = figure.add_axes((0.55, 0.11, 0.42, 0.66))
    _draw(left, "mean loss (nats)", history.loss, history.test_loss)
    _draw(right, "accuracy (%)", history.train_percent, history.test_percent)
    for before in history.before_percent:
        told = f"tested before the first epoch: {before:.1f} %"
        options = {"transform": right.transAxes, "ha": "right", "fontsize": 10}
        right.text(0.98, 0.05, told, color=FAINT_INK, **options)
    save_figure(figure, path)


def _draw(
    axis: "Axes",
    what: str,
    learned: Sequence[float],
    tested: Sequence[float],
) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_facecolor(BAND)
    plain_axis(axis)
    axis.grid(color=RULE, linewidth=0.8)
    axis.set_axisbelow(True)
    epochs = range(1, len(learned) + 1)
    marker = "o" if len(learned) <= 30 else ""
    options = {"marker": marker, "markersize": 4, "linewidth": 1.8}
    axis.plot(epochs, learned, color=_LEARNED, label="learned from", **options)
    axis.plot(epochs, tested, color=_TESTED, label="tested on", **options)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.6, len(learned) + 0.4)
    axis.set_xlabel("epoch", color=FAINT_INK)
    axis.set_title(what, fontsize=11, color=INK, loc="left", pad=10)
    axis.legend(
        loc="lower right",
        bbox_to_anchor=(1.01, 0.99),
        ncols=2,
        frameon=False,
        fontsize=10,
        labelcolor=INK,
    )

"""The picture of the study: error against the bits of a logarithmic format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from .trainers import MEANINGS, Arithmetic

FIGURE_SIZE = (9.0, 6.0)
"""Inches."""

_COLOURS = {
    Arithmetic.PRODUCTS: COLOURS["matrix"],
    Arithmetic.EVERYWHERE: WRONG,
    Arithmetic.COMPENSATED: COLOURS["post"],
    Arithmetic.COMPLEMENTED: RIGHT,
}


def points(figures: Mapping[str, Any]) -> dict[Arithmetic, dict[str, float]]:
    """Mean errors of the last epochs of complete runs, by arithmetic and format."""
    found: dict[Arithmetic, dict[str, float]] = {}
    for row in figures["table"]:
        if row["arithmetic"] == Arithmetic.FLOAT32 and row["complete_seeds"]:
            found[Arithmetic.FLOAT32] = {figures["format"]: row["last_epochs_error_percent"]}
    for entry in figures["formats"]:
        for name, error in entry["last_epochs_error_percent"].items():
            if error is not None:
                found.setdefault(Arithmetic(name), {})[entry["format"]] = error
    return found


def draw_study(path: Path, figures: Mapping[str, Any]) -> None:
    """Draws one PNG of a report's figures.

    Raises
    ------
    InputError
        If the file is no .png, no run is complete, or matplotlib is not installed.
    """
    check_png("--plot", path)
    found = points(figures)
    if not found:
        raise InputError("a picture of the study needs at least one complete training")
    figure = blank_figure(FIGURE_SIZE)
    axis = figure.add_axes((0.09, 0.1, 0.87, 0.76))
    axis.set_facecolor(BAND)
    title = "Training on MNIST in logarithmic arithmetic"
    figure.text(0.09, 0.94, title, fontsize=15, fontweight="bold", color=INK, va="center")
    caption = f"{figures['network']}, {figures['epochs']} epochs; mean of the last epochs"
    figure.text(0.09, 0.895, caption, fontsize=10, color=FAINT_INK, va="center")
    for arithmetic, errors in found.items():
        if arithmetic is Arithmetic.FLOAT32:
            level = next(iter(errors.values()))
            axis.axhline(level, color=INK, linewidth=1.2, linestyle="--", label="float32")
            continue
        names = sorted(errors, key=_bits)
        axis.plot(
            [_bits(name) for name in names],
            [errors[name] for name in names],
            color=_COLOURS[arithmetic],
            marker="o",
            label=MEANINGS[arithmetic],
        )
    _label(axis, sorted({name for errors in found.values() for name in errors}, key=_bits))
    axis.legend(frameon=False, fontsize=10, labelcolor=INK)
    save_figure(figure, path)


def _bits(name: str) -> int:
    """Counts the bits of a format, by its name."""
    return sum(int(part) for part in name.removeprefix("lns").split("+"))


def _label(axis: Any, names: Sequence[str]) -> None:
    axis.set_xticks([_bits(name) for name in names], [name.removeprefix("lns") for name in names])
    axis.set_ylim(bottom=0)
    axis.grid(color=RULE, linewidth=0.8)
    plain_axis(axis)
    axis.set_xlabel("format: sign + integer bits + fraction bits", fontsize=10, color=FAINT_INK)
    axis.set_ylabel("validation error, %", fontsize=10, color=FAINT_INK)

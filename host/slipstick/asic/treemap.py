"""The treemap: every block a rectangle of its area, within that of the block around it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..plots.figures import FAINT_INK, INK, PAPER, blank_figure, save_figure
from .areas import BlockArea

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_SIZE = (14.0, 9.0)
"""Inches."""
COLOURS = ("#2f6fb3", "#e8912d", "#3a9a5b", "#b04a7a", "#7a5fb0", "#8a8f3c", "#4aa3a3", "#a2674a")
"""Colours of the blocks directly below the top, the largest first."""
_SMALLEST_LABEL = 0.003
"""Share of a panel from which a rectangle has room for its name."""
_LETTERS = 190.0
"""Letters of size 8 that stand side by side in the picture's width."""
_LINES = 55.0
"""Lines of size 8 below one another in a panel."""

Entry = tuple[str, int, float, bool]
"""A block's name, its count, an area, and whether that is its memories'."""


@dataclass(frozen=True)
class Rectangle:
    """A place in the picture, in shares of its width and height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def size(self) -> float:
        """Share of the picture."""
        return self.width * self.height


def squarify(areas: Sequence[float], place: Rectangle) -> list[Rectangle]:
    """Divides a place among areas that descend, in rectangles that are nearly squares.

    The algorithm of M. Bruls, K. Huizing and J. J. van Wijk, "Squarified treemaps", 2000: areas
    join a row along the shorter side as long as the worst of its rectangles gets no longer.
    """
    total, found = sum(areas), list[Rectangle]()
    rest = list(areas)
    while rest:
        scale = place.size / total if total else 0.0
        side = min(place.width, place.height)
        count = 1
        while count < len(rest) and _worst(rest[: count + 1], side, scale) <= _worst(
            rest[:count], side, scale
        ):
            count += 1
        row, rest = rest[:count], rest[count:]
        pieces, place = _lay(row, place, scale)
        found += pieces
        total -= sum(row)
    return found


def _worst(row: Sequence[float], side: float, scale: float) -> float:
    """The largest ratio of sides in a row along ``side``."""
    depth = sum(row) * scale / side if side else 0.0
    ratios = (depth * depth / (area * scale) for area in row if area * scale > 0)
    return max((max(ratio, 1 / ratio) for ratio in ratios if ratio > 0), default=1.0)


def _lay(row: Sequence[float], place: Rectangle, scale: float) -> tuple[list[Rectangle], Rectangle]:
    """The rectangles of a row, and the place that is left."""
    size = sum(row) * scale
    if place.width >= place.height:
        depth = size / place.height if place.height else 0.0
        shares = _shares(row, place.y, place.height)
        pieces = [Rectangle(place.x, start, depth, length) for start, length in shares]
        left = Rectangle(place.x + depth, place.y, place.width - depth, place.height)
    else:
        depth = size / place.width if place.width else 0.0
        shares = _shares(row, place.x, place.width)
        pieces = [Rectangle(start, place.y, length, depth) for start, length in shares]
        left = Rectangle(place.x, place.y + depth, place.width, place.height - depth)
    return pieces, left


def _shares(row: Sequence[float], start: float, length: float) -> Iterator[tuple[float, float]]:
    total = sum(row)
    for area in row:
        part = length * area / total if total else 0.0
        yield start, part
        start += part


def draw_treemap(path: Path, blocks: Sequence[BlockArea], title: str) -> None:
    """Draws the blocks' areas as a PNG: their cells alone, and beside that their memories too.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    figure = blank_figure(FIGURE_SIZE)
    figure.text(0.02, 0.955, title, fontsize=15, fontweight="bold", color=INK)
    cells = [(block.name, block.count, block.cell_area, False) for block in blocks]
    memories = [(block.name, block.count, block.memory_area, True) for block in blocks]
    colours = _colours(cells)
    panels = [("cells", cells, 0.02, 0.96)]
    if any(area for *_, area, _ in memories):
        panels = [
            ("cells", cells, 0.02, 0.62),
            ("cells, and memories (light)", cells + memories, 0.66, 0.32),
        ]
    for name, entries, left, width in panels:
        total = sum(area for *_, area, _ in entries)
        heading = f"{name}: {total / 1e6:.3f} mm²"
        figure.text(left, 0.92, heading, fontsize=11, color=FAINT_INK)
        axes = figure.add_axes((left, 0.02, width, 0.885))
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.axis("off")
        _draw_panel(axes, entries, colours, total, width)
    save_figure(figure, path)


def _group(name: str) -> str:
    """The block directly below the top that a block is in."""
    return name.split(".")[0] or "top"


def _by_group(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Entries that have an area by the block below the top, the largest first."""
    groups = dict[str, list[Entry]]()
    for entry in sorted(entries, key=lambda entry: -entry[2]):
        if entry[2] > 0:
            groups.setdefault(_group(entry[0]), []).append(entry)
    return sorted(groups.items(), key=lambda item: -sum(entry[2] for entry in item[1]))


def _colours(entries: Sequence[Entry]) -> dict[str, str]:
    groups = [group for group, _ in _by_group(entries)]
    return {group: COLOURS[k % len(COLOURS)] for k, group in enumerate(groups)}


def _draw_panel(
    axes: "Axes",
    entries: Sequence[Entry],
    colours: Mapping[str, str],
    total: float,
    width: float,
) -> None:
    from matplotlib.patches import Rectangle as Patch

    groups = _by_group(entries)
    areas = [sum(entry[2] for entry in inside) for _, inside in groups]
    for (group, inside), place in zip(groups, squarify(areas, Rectangle(0, 0, 1, 1)), strict=True):
        colour = colours.get(group, COLOURS[-1])
        parts = squarify([entry[2] for entry in inside], place)
        for (name, count, area, memory), part in zip(inside, parts, strict=True):
            axes.add_patch(
                Patch(
                    (part.x, part.y),
                    part.width,
                    part.height,
                    facecolor=colour,
                    edgecolor=PAPER,
                    alpha=0.35 if memory else 0.8,
                )
            )
            if part.size > _SMALLEST_LABEL:
                _label(axes, name or "top", count, area / total, part, width)


def _label(
    axes: "Axes", name: str, count: int, share: float, part: Rectangle, width: float
) -> None:
    """A block's name and share, as large as they fit."""
    lines = [*name.split("."), f"{share:.1%}"]
    if count > 1:
        lines[-2] += f" × {count}"
    across = 8.0 * part.width * width * _LETTERS / max(map(len, lines))
    down = 8.0 * part.height * _LINES / len(lines)
    axes.text(
        part.x + part.width / 2,
        part.y + part.height / 2,
        "\n".join(lines),
        ha="center",
        va="center",
        fontsize=max(3.0, min(10.0, across, down)),
        color=INK,
    )

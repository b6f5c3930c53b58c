"""Names beside the points of a picture, where there is a free place for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .figures import DOTS_PER_INCH, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 8.0
_GAP = 5.0
_LETTER_WIDTH = 0.55 * _SIZE
_LINE_HEIGHT = 1.2 * _SIZE
"""Points, as all sizes of letters."""
_LINES = 3
"""Lines that a name may be away from its point."""
_PIXELS_PER_POINT = DOTS_PER_INCH / 72


def annotate(axis: "Axes", names: Mapping[tuple[float, float], str]) -> None:
    """Writes names beside their points, which come first; those without a free place are left out.

    The limits of the axis must be set.
    """
    edges = axis.transAxes.transform([(0, 0), (1, 1)]) / _PIXELS_PER_POINT
    free = _Box(edges[0][0], edges[0][1], edges[1][0], edges[1][1])
    placed: list[_Box] = []
    for place, name in names.items():
        x, y = axis.transData.transform(place) / _PIXELS_PER_POINT
        for box in _places(x, y, len(name) * _LETTER_WIDTH):
            if box.is_within(free) and not any(box.meets(other) for other in placed):
                break
        else:
            # the table has it
            continue
        placed.append(box)
        axis.annotate(
            name,
            place,
            # letters are narrower than they were taken for: they begin, or end, at the point
            xytext=((box.right if box.right < x else box.left) - x, box.bottom - y),
            textcoords="offset points",
            ha="right" if box.right < x else "left",
            fontsize=_SIZE,
            color=INK,
            zorder=6,
        )


@dataclass(frozen=True)
class _Box:
    """A rectangle of the picture, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def is_within(self, other: "_Box") -> bool:
        across = other.left <= self.left and self.right <= other.right
        return across and other.bottom <= self.bottom and self.top <= other.top

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top


def _places(x: float, y: float, width: float) -> Iterator[_Box]:
    """Yields the boxes for a point's name: above to the left, where no point is, or below."""
    for line in range(_LINES):
        bottom = y + _GAP + line * _LINE_HEIGHT
        left = x - _GAP - width
        yield _Box(left, bottom, left + width, bottom + _LINE_HEIGHT)
    for line in range(_LINES):
        bottom = y - _GAP - (line + 1) * _LINE_HEIGHT
        yield _Box(x + _GAP, bottom, x + _GAP + width, bottom + _LINE_HEIGHT)

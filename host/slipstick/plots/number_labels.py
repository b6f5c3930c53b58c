"""Places the numbers of a diagram's points so that they hide nothing."""

from collections.abc import Iterator, Sequence

import numpy as np

CHARACTER_WIDTH, LABEL_HEIGHT, LINE_WIDTH = 7.5, 15.0, 3.0
"""In dots."""
MARKER_SIZE = np.array([11.0, 9.0])
"""Width and height, in dots."""

Box = tuple[np.ndarray, np.ndarray]
"""Middle and size, (x, y) each."""


def labels(
    points: np.ndarray, bars: np.ndarray, line: Box, bounds: np.ndarray
) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yields the labels of points that are numbered from 1; points of one place share theirs.

    Parameters
    ----------
    points, bars : arrays (points, 2)
        In dots. A bar belongs to each point, and a stem joins them.
    line : Box
        What labels must not hide besides.
    bounds : array
        Left, bottom, width and height that they stay in.

    Yields
    ------
    (text, point, offset)
        The first of its points, from 0, and the way from there to the label's middle.
    """
    taken = [(place, MARKER_SIZE) for place in (*points, *bars)]
    for point, bar in zip(points, bars, strict=True):
        taken.append(((point + bar) / 2, abs(point - bar) + LINE_WIDTH))
    taken.append(line)
    for members in _places(points):
        text = ", ".join(str(number + 1) for number in members)
        size = np.array([CHARACTER_WIDTH * len(text) + 6, LABEL_HEIGHT])
        offset = _free_offset(points[members[0]], size, taken, bounds)
        taken.append((points[members[0]] + offset, size))
        yield text, members[0], offset


def _places(points: np.ndarray) -> list[list[int]]:
    """Groups the points by place: those that would hide each other are one group."""
    places: list[list[int]] = []
    for number, point in enumerate(points):
        for members in places:
            if (abs(points[members[0]] - point) < MARKER_SIZE / 2).all():
                members.append(number)
                break
        else:
            places.append([number])
    return places


def _free_offset(
    place: np.ndarray,
    size: np.ndarray,
    taken: Sequence[Box],
    bounds: np.ndarray,
) -> np.ndarray:
    """Returns the way from a point to its label's middle, in dots: the nearest that hides nothing.

    Parameters
    ----------
    place, size : arrays (2,)
        Of the point, and the label's width and height.
    taken : sequence of Box
        What labels must not hide.
    bounds : array
        Left, bottom, width and height that they stay in.
    """
    angles = np.deg2rad(-90 + np.array([0, 30, -30, 60, -60, 90, -90, 120, -120, 150, -150, 180]))
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1).round(6)
    beside = np.array([size[0] / 2 - CHARACTER_WIDTH, 0])
    candidates = [
        radius * way + np.sign(way) * beside for radius in range(16, 400, 6) for way in ways
    ]
    for candidate in candidates:
        middle = place + candidate
        low, high = middle - size / 2, middle + size / 2
        inside = (low >= bounds[:2]).all() and (high <= bounds[:2] + bounds[2:]).all()
        if inside and not any((abs(middle - m) < (size + s) / 2).all() for m, s in taken):
            return candidate
    return candidates[0]

"""Counts what the page shows: rates of the last minute, and percentiles of latencies."""

import time
from collections import deque

import numpy as np

WINDOW_SECONDS = 60
_MOST_LATENCIES = 4096
PERCENTILES = (50, 90, 99)


class ModelStatistics:
    """Keeps the figures of one network's requests.

    Members
    -------
    requests, images, refused : int
        Requests that were answered with results, their images, and requests that were not.
    """

    def __init__(self) -> None:
        self.requests = self.images = self.refused = 0
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_MOST_LATENCIES)
        self._images: deque[tuple[int, int]] = deque(maxlen=WINDOW_SECONDS + 1)
        """Seconds of the clock, and images that were done in each."""

    def note(self, images: int, seconds: float) -> None:
        """A request has been answered after so many seconds."""
        now = time.monotonic()
        self.requests += 1
        self.images += images
        self._latencies.append((now, seconds))
        second = int(now)
        before = 0
        if self._images and self._images[-1][0] == second:
            before = self._images.pop()[1]
        self._images.append((second, before + images))

    def images_per_second(self, seconds: int = 5) -> float:
        """The mean rate of the last whole seconds."""
        now = int(time.monotonic())
        done = sum(count for second, count in self._images if now - seconds <= second < now)
        return done / seconds

    def latencies_ms(self) -> dict[str, float | None]:
        """Percentiles of the last minute's requests, as ``p50``; None: there were none."""
        oldest = time.monotonic() - WINDOW_SECONDS
        recent = [seconds for at, seconds in self._latencies if at >= oldest]
        if not recent:
            return {f"p{each}": None for each in PERCENTILES}
        values = np.percentile(recent, PERCENTILES) * 1e3
        return {f"p{each}": float(v) for each, v in zip(PERCENTILES, values, strict=True)}

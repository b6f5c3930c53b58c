"""Sums up the boards of a server, over all networks that share them."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from .inference import JsonObject
from .models import ModelRepository, ServedModel

STATES = ("idle", "working", "failed")
_HISTORY_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class BoardSummary:
    """A board, over all networks.

    Parameters
    ----------
    number : int
    name, target : str
    state : str
        One of ``STATES``.
    error : str
        Why it failed last.
    images, failures, in_flight : int
    busy_seconds : float
        In which it had images.
    rates : tuple of (ServedModel, float)
        Images per second while it works, by network; only of those that it has run.
    """

    number: int
    name: str
    target: str
    state: str
    error: str
    images: int
    failures: int
    in_flight: int
    busy_seconds: float
    rates: tuple[tuple[ServedModel, float], ...]


def board_summaries(models: Sequence[ServedModel]) -> list[BoardSummary]:
    """Returns each board; sessions list the boards that they share in one order."""
    columns = zip(*(model.session.boards() for model in models), strict=True)
    summaries = []
    for number, statuses in enumerate(columns):
        states = [str(each.state) for each in statuses]
        state = next((each for each in ("failed", "working") if each in states), "idle")
        rates = [
            (model, float(each.rate))
            for model, each in zip(models, statuses, strict=True)
            if each.rate
        ]
        summaries.append(
            BoardSummary(
                number=number,
                name=statuses[0].name,
                target=statuses[0].target,
                state=state,
                error=next((each.error for each in statuses if each.error), "") or "",
                images=sum(each.images for each in statuses),
                failures=sum(each.failures for each in statuses),
                in_flight=sum(each.in_flight for each in statuses),
                busy_seconds=sum(each.busy_seconds for each in statuses),
                rates=tuple(rates),
            )
        )
    return summaries


class BoardHistory:
    """Images per second and the queue's length, once per second of the last two minutes.

    Parameters
    ----------
    repository : ModelRepository
    """

    def __init__(self, repository: ModelRepository) -> None:
        self._repository = repository
        self._samples: deque[tuple[float, list[int], int]] = deque(maxlen=_HISTORY_SECONDS + 1)

    async def keep(self) -> None:
        """Takes samples until it is cancelled."""
        while True:
            self._sample()
            await asyncio.sleep(1.0)

    def _sample(self) -> None:
        models = self._repository.models
        images = [board.images for board in board_summaries(models)]
        pending = sum(model.pending for model in models)
        self._samples.append((time.monotonic(), images, pending))

    def board_rates(self, seconds: int = 5) -> list[float]:
        """Each board's images per second, the mean of the last seconds."""
        if len(self._samples) < 2:
            return []
        now, images, _ = self._samples[-1]
        before, old, _ = self._samples[-min(seconds + 1, len(self._samples))]
        return [(new - last) / (now - before) for new, last in zip(images, old, strict=True)]

    def entry(self) -> JsonObject:
        """Images per second and queue of each past second, the oldest first."""
        samples = list(self._samples)
        rates = [
            (sum(images) - sum(old)) / (now - before)
            for (before, old, _), (now, images, _) in zip(samples, samples[1:], strict=False)
        ]
        return {
            "images_per_second": [round(rate, 2) for rate in rates],
            "queue": [pending for _, _, pending in samples[1:]],
        }

"""Defines how much a server takes at once."""

from dataclasses import dataclass

from ..errors import InputError

MOST_QUEUE = 1 << 20
MOST_BODY = 1 << 30
MOST_DELAY_MS = 10_000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Holds the limits of what a server takes at once.

    Parameters
    ----------
    queue : int
        Images per model that wait or are computed; a request beyond is refused with status 429.
    max_body : int
        Bytes of a request's body; a larger one is refused with status 413.
    batch_delay_ms : float
        How long an image may wait for others, so that they go to the boards together. 0: it goes
        at once.
    batch : int
        Images that need not wait any longer.
    body_seconds : float
        A request's body must be there within this time.
    drain_seconds : float
        How long the server waits at its end for requests that it has begun.
    connections : int
        Open connections and running requests.

    Raises
    ------
    InputError
        If a limit is out of its range.
    """

    queue: int = 1024
    max_body: int = 16 << 20
    batch_delay_ms: float = 0.0
    batch: int = 16
    body_seconds: float = 30.0
    drain_seconds: float = 30.0
    connections: int = 1024

    def __post_init__(self) -> None:
        _check("--queue", self.queue, 1, MOST_QUEUE)
        _check("--max-body", self.max_body, 1024, MOST_BODY)
        _check("--max-batch-delay", self.batch_delay_ms, 0, MOST_DELAY_MS)

    @property
    def all_bodies(self) -> int:
        """Bytes of all bodies that are read at one time."""
        return 8 * self.max_body


def _check(option: str, value: float, least: int, most: int) -> None:
    # a NaN is in no range
    if not least <= value <= most:
        raise InputError(f"{option} must be within {least}..{most}, not {value:g}")

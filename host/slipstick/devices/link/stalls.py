"""Predicts when a device is too busy to take bytes, on a wire that cannot hold a sender back."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from slipstick_rtl.link.protocol import Command

from .burst import Burst
from .request import Request

_LONG_ANSWER = 64
"""Bytes of an answer that keep the device from taking requests."""
_SPARE = 1.1
"""A run may take so much longer than predicted before bytes are lost."""
_RESUME = 1.005
"""Multiple of its predicted time after which a run counts as ended: predictions are that good."""
_LEAST_SLACK_SECONDS = 0.3e-3
_MOST_SLACK_SECONDS = 0.05
"""More than the late answer of any adapter: no sooner than that is as good as waiting for it."""


@dataclass
class _Stall:
    """A request that keeps the device busy, the bytes sent up to its end, and until when."""

    request: Request | Burst
    sent: int
    until: float


class Stalls:
    """Keeps account of the requests in flight that keep the device from taking bytes.

    Nothing is known of a device but the times at which bytes were sent, and how long its runs are
    predicted to take. When a stall should be over, sending goes on without its answer, which an
    adapter may deliver 16 ms late.

    Parameters
    ----------
    transport : object
        ``seconds(count)``, how long bytes take on the wire, and ``now()``, a clock in seconds, are
        used if it has them.
    receive_bytes : int or None
        What the device takes while it is busy; None: the wire can hold back, and nothing stalls.
    """

    def __init__(self, transport: object, receive_bytes: int | None) -> None:
        self._seconds: Callable[[int], float] | None = getattr(transport, "seconds", None)
        self._now: Callable[[], float] = getattr(transport, "now", time.monotonic)
        self._room = receive_bytes
        self._run_ends_at = self._run_seconds = self._sent_until = 0.0
        self._slack = _LEAST_SLACK_SECONDS
        self._stalls: deque[_Stall] = deque()

    def clear(self) -> None:
        """Nothing is in flight."""
        self._stalls.clear()

    def fail(self) -> None:
        """Bytes were lost, perhaps as they came too soon: be slower from now on."""
        self._slack = min(4 * self._slack, _MOST_SLACK_SECONDS)

    def launch(self, request: Request | Burst, *, alone: bool, sent: int) -> bool:
        """Notes that a request is sent.

        Parameters
        ----------
        request : Request
        alone : bool
            Nothing is in flight before it.
        sent : int
            Bytes in flight, its own included.

        Returns
        -------
        bool
            Whether the device takes so long for it that bytes behind it could be lost.
        """
        if self._room is None or self._seconds is None:
            return False
        self._sent_until = max(self._sent_until, self._now()) + self._seconds(request.size)
        left = self._seconds_of(request, alone)
        room = self._seconds(self._room)
        if request.answer_bytes > _LONG_ANSWER:
            until = math.inf
        elif _SPARE * left > room / 2:
            until = self._sent_until + _RESUME * left + self._slack
        else:
            return False
        self._stalls.append(_Stall(request, sent, until))
        return True

    def has_room(self, sent: int, size: int) -> bool:
        """Tells whether so many bytes more may follow those in flight."""
        stall = self._first()
        return stall is None or self._room is None or sent - stall.sent + size <= self._room

    def pause(self) -> float | None:
        """Seconds until the first stall should be over; None if there is none, or it never is."""
        stall = self._first()
        if stall is None or math.isinf(stall.until):
            return None
        return max(stall.until - self._now(), 0.0)

    def remove(self, request: Request | Burst) -> None:
        """The first request in flight is done."""
        if self._stalls and self._stalls[0].request is request:
            self._stalls.popleft()
        for stall in self._stalls:
            stall.sent -= request.size

    def _first(self) -> _Stall | None:
        if not self._stalls:
            return None
        now = self._now()
        return next((stall for stall in self._stalls if stall.until > now), None)

    def _seconds_of(self, request: Request | Burst, alone: bool) -> float:
        """Predicts the seconds from its last byte's arrival until the device has done with it."""
        arrival = self._sent_until
        if alone:
            # what is left of a run is no more than a whole one
            self._run_ends_at = min(self._run_ends_at, arrival + self._run_seconds)
        if isinstance(request, Burst):
            return 0.0  # there are none on wires that can stall
        left = self._run_ends_at - arrival if request.waiting else 0.0
        if request.command is Command.HOLD:
            left -= self._run_seconds - request.run_seconds
        elif request.run_seconds:
            self._run_seconds = request.run_seconds
            self._run_ends_at = arrival + max(left, 0.0) + request.run_seconds
            if request.is_after:
                left = self._run_ends_at - arrival
        return left

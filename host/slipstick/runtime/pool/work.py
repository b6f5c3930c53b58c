"""The work of a pool: what waits, who has what, and what comes back from a board that failed."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import numpy as np

from ..feeds import image_count

Values = dict[str, np.ndarray]

_CHUNK_SECONDS = 0.2
"""Board's time that a part of a batch should take: long against a round trip, short against
the batch."""
_LEAST_SECONDS = 0.02
"""A part takes at least so long, if the batch has enough: each one costs the host a millisecond."""
_LEAST_PARTS = 4
"""Parts per board that a batch has enough for."""
_MOST_AT_ONCE = 256
_FIRST = 16
"""Images for a board whose rate is not known."""
_STEAL_SECONDS = 0.05
"""An idle board leaves others so much time at least before it computes what they have."""
_STEAL_FACTOR = 4.0
_SLOW_SECONDS = 0.3
"""It leaves what another one will have done by then: longer than what boards have ahead."""
_AGAIN = 3
"""So often every board may fail with the same work before the error is the caller's."""


class Worker(Protocol):
    """Describes a board to the queue.

    Members
    -------
    rate : float or None
        Images per second, as measured.
    mark : float
        When the board began with the first of what it has.
    """

    rate: float | None
    mark: float

    def ahead_of(self, work: "Work") -> tuple[int, int]:
        """Images of the first work that the board has, and of all up to this one."""
        ...


@dataclass(eq=False)
class Work:
    """Images for one board: a part of a batch, or a single one.

    Members
    -------
    feeds : dict of array
        The inputs, images in the leading axis.
    future : Future of dict of array
    wanted : tuple of str or None
        Which outputs of a batch's part; None: a single image, with all that the host sees.
    """

    feeds: Values
    future: "Future[Values]"
    wanted: tuple[str, ...] | None = None
    blamed: Counter[int] = field(default_factory=Counter)
    holders: set[int] = field(default_factory=set)
    settled: bool = False
    """It has a result, or an error; or nobody wants one."""

    def settle(self) -> bool:
        """Settles the work; tells whether the caller is the one who must set the future.

        Callers hold ``WorkQueue.changed``.
        """
        first = not self.settled and not self.future.cancelled()
        self.settled = True
        return first and self.future.set_running_or_notify_cancel()

    @property
    def images(self) -> int:
        """Counts the images."""
        return image_count(self.feeds)

    @property
    def is_single(self) -> bool:
        """Tells whether it may follow others in a stream."""
        return self.wanted is None


class Batch:
    """A batch of which boards take parts.

    Parameters
    ----------
    inputs : dict of array, each (images, ...)
    wanted : tuple of str
    unit : int
        Parts are multiples of so many images, but the last one.
    """

    def __init__(self, inputs: Values, wanted: tuple[str, ...], unit: int = 1) -> None:
        self.images = image_count(inputs)
        self.parts: deque[tuple[slice, Work]] = deque()
        """Those that were taken, in the order of their images."""
        self._inputs, self._wanted, self._unit = inputs, wanted, unit
        self._next = 0

    @property
    def remaining(self) -> int:
        """Images that no board has taken."""
        return self.images - self._next

    def take(self, images: int) -> Work:
        """The next part, of about so many images."""
        size = max(1, round(images / self._unit)) * self._unit
        span = slice(self._next, min(self._next + size, self.images))
        self._next = span.stop
        work = Work({n: v[span] for n, v in self._inputs.items()}, Future(), self._wanted)
        self.parts.append((span, work))
        return work

    def drop(self) -> None:
        """Nobody wants the rest."""
        self._next = self.images


class WorkQueue:
    """Keeps the work that is to be done, and the boards that do it. Threads share it.

    Members
    -------
    changed : Condition
        Told whenever there is more to do, or less.
    boards : list of Worker
        Their numbers are their places.
    working : set of int
        Boards that take work.
    retried : int
        Images that boards had when they failed: others have computed them, or these once more.
    closed : bool
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.boards: list[Worker] = []
        self.working: set[int] = set()
        self.retried = 0
        self.closed = False
        self._returned: deque[Work] = deque()
        self._singles: deque[Work] = deque()
        self._batches: deque[Batch] = deque()
        self._held: dict[Work, int] = {}
        """Work that is with boards, oldest first."""
        self._numbers = count()

    @property
    def waiting(self) -> int:
        """Images that no board has taken."""
        waiting = sum(work.images for work in (*self._returned, *self._singles))
        return waiting + sum(batch.remaining for batch in self._batches)

    def submit(self, feeds: Values) -> Work:
        """Puts a single image at the end."""
        work = Work(feeds, Future())
        with self.changed:
            self._singles.append(work)
            self.changed.notify_all()
        return work

    def add(self, batch: Batch) -> None:
        """Puts a batch at the end."""
        with self.changed:
            self._batches.append(batch)
            self.changed.notify_all()

    def drop(self, batch: Batch) -> None:
        """Forgets what of a batch no board has finished."""
        with self.changed:
            batch.drop()
            if batch in self._batches:
                self._batches.remove(batch)
            for _, work in batch.parts:
                work.future.cancel()

    def has_work(self, board: int, *, single: bool | None = None) -> bool:
        """Tells whether ``take`` gives something; the caller holds ``changed``."""
        return self._find(board, single) is not None

    def take(self, board: int, *, single: bool | None = None) -> Work | None:
        """The next work for a board, None if there is none of the kind.

        Parameters
        ----------
        board : int
        single : bool, optional
            Only single images, or only parts of batches.
        """
        with self.changed:
            found = self._find(board, single)
            work = None if found is None else found()
            if work is None:
                return None
            work.holders.add(board)
            self._held.setdefault(work, next(self._numbers))
            return work

    def _find(self, board: int, single: bool | None) -> Callable[[], Work] | None:
        """Returns a function that takes the next work for a board; None if there is none."""
        for queue in (self._returned, self._singles):
            while queue and (queue[0].settled or queue[0].future.cancelled()):
                queue.popleft()
        for queue in (self._returned, self._singles):
            if queue and single in (None, queue[0].is_single):
                return queue.popleft
        while self._batches and not self._batches[0].remaining:
            self._batches.popleft()
        if self._batches and single is not True:
            batch = self._batches[0]
            return lambda: batch.take(self._share(board, batch))
        if self._returned or self._singles or self._batches:
            return None
        stolen = self._stolen(board, single)
        return None if stolen is None else lambda: stolen

    def _share(self, board: int, batch: Batch) -> int:
        """Images of a part: by the board's rate, and smaller towards the end of the batch."""
        remaining = batch.remaining
        rates = {each: self.boards[each].rate for each in self.working | {board}}
        rate = rates[board]
        if rate is None:
            return max(1, min(_FIRST, remaining // (2 * len(rates))))
        known = [each for each in rates.values() if each is not None]
        total = sum(known) * len(rates) / len(known)
        left = remaining * rate / total / 2
        least = min(rate * _LEAST_SECONDS, batch.images * rate / total / _LEAST_PARTS)
        chunk = min(rate * _CHUNK_SECONDS, _MOST_AT_ONCE, max(left, least))
        return max(1, round(chunk))

    def fair_share(self, board: int) -> int:
        """Single images that a board may have, so that no other one is idle meanwhile."""
        with self.changed:
            held = sum(work.is_single for work in self._held)
            waiting = len(self._singles) + len(self._returned)
            rates = [self.boards[each].rate for each in self.working | {board}]
        own = self.boards[board].rate
        known = [rate for rate in rates if rate is not None]
        if own is None or not known:
            return max(1, -(-(held + waiting) // max(1, len(rates))))
        total = sum(known) * len(rates) / len(known)
        return max(1, math.ceil((held + waiting) * own / total))

    def _stolen(self, board: int, single: bool | None) -> Work | None:
        """Finds work of another board that an idle one may as well compute too: the other one has
        come to a stop, or is much slower."""
        now = time.monotonic()
        for work in self._held:
            if board in work.holders or len(work.holders) > 1 or work.settled:
                continue
            if single not in (None, work.is_single):
                continue
            if any(self._is_late(self.boards[other], work, board, now) for other in work.holders):
                return work
        return None

    def _is_late(self, other: Worker, work: Work, board: int, now: float) -> bool:
        first, until = other.ahead_of(work)
        since, own = now - other.mark, self.boards[board].rate
        usual = 0.0 if other.rate is None else first / other.rate
        if since >= max(_STEAL_SECONDS, _STEAL_FACTOR * usual):
            return True
        if other.rate is None or own is None:
            return False
        return until / other.rate - since > max(_SLOW_SECONDS, _STEAL_FACTOR * work.images / own)

    def seconds_to_steal(self) -> float | None:
        """Returns the seconds that an idle board may sleep; None: until it is woken."""
        return _STEAL_SECONDS if self._held else None

    def finish(self, board: int, work: Work, values: Values) -> bool:
        """A board has computed; False if another one was faster."""
        with self.changed:
            self._leave(board, work)
            first = work.settle()
            self.changed.notify_all()
        if first:
            work.future.set_result(values)
        return first

    def fail(self, board: int, work: Work, error: BaseException) -> None:
        """The error is the work's own, not the board's."""
        with self.changed:
            self._leave(board, work)
            first = work.settle()
            self.changed.notify_all()
        if first:
            work.future.set_exception(error)

    def give_back(self, board: int, works: list[Work], error: BaseException) -> None:
        """A board has failed; the first of its works is what it failed at."""
        hopeless = []
        with self.changed:
            for number, work in enumerate(works):
                self._leave(board, work)
                self.retried += work.images
                if work.settled or work.future.cancelled():
                    continue
                if not number:
                    work.blamed[board] += 1
                    tried = [work.blamed[each] >= _AGAIN for each in self.working | {board}]
                    if all(tried):
                        if work.settle():
                            hopeless.append(work)
                        continue
                if not work.holders:
                    self._returned.append(work)
            self.changed.notify_all()
        for work in hopeless:
            work.future.set_exception(error)

    def fail_all(self, error: BaseException) -> None:
        """No board is left: all that waits ends with the error."""
        with self.changed:
            works = [*self._returned, *self._singles]
            for batch in self._batches:
                while batch.remaining:
                    works.append(batch.take(batch.remaining))
            self._returned.clear()
            self._singles.clear()
            self._batches.clear()
            works = [work for work in works if work.settle()]
            self.changed.notify_all()
        for work in works:
            work.future.set_exception(error)

    def close(self) -> None:
        """No board takes anything any more."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _leave(self, board: int, work: Work) -> None:
        work.holders.discard(board)
        if not work.holders:
            self._held.pop(work, None)

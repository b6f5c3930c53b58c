"""A board of a pool: a thread that takes work, and brings the board back after a failure."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from ...devices.base import Device
from ...devices.turns import TURNS
from ...errors import DeviceError
from ..arrivals import MOST_AHEAD, Source
from ..sharing import exclusive, sharing_of
from .work import Values, Work, WorkQueue

_PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each try to bring a board back; the last one for all that follow."""
HOPELESS = 4
"""Tries that failed after which a board counts as gone, until one succeeds."""
_AHEAD_SECONDS = 0.25
"""Computing time of the work that may be on its way to a board: it is lost if the board fails."""
_SMOOTHING = 0.05
_STAY_SECONDS = 0.1
"""Time that a session keeps a device that another one waits for."""
_IDLE_SECONDS = 2e-3
"""A stream ends when nothing has come for so long, and the device is free for other sessions."""


class Runner(Protocol):
    """An execution, as a pool needs it."""

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """Runs images, in the leading axis."""
        ...

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """Runs images as they come."""
        ...

    def reset_state(self) -> None:
        """The next inference begins as the first one did."""
        ...


class BoardState(StrEnum):
    """States of a board."""

    IDLE = "idle"
    WORKING = "working"
    FAILED = "failed"
    """It does not answer, and is tried again from time to time."""


@dataclass(frozen=True, kw_only=True)
class BoardStatus:
    """A board of a pool, as it is now.

    Parameters
    ----------
    name : str
        As for ``open_device``.
    target : str
        Its hardware.
    state : BoardState
    error : str
        Why it failed last; empty: it never did.
    images : int
        It has computed so many.
    rate : float
        Images per second while it works; 0: not known.
    busy_seconds : float
        In which it had images.
    failures : int
    in_flight : int
        Images that it has now.
    """

    name: str
    target: str
    state: BoardState
    error: str
    images: int
    rate: float
    busy_seconds: float
    failures: int
    in_flight: int


class Board:
    """Takes work from a queue until it is closed.

    Parameters
    ----------
    number : int
    queue : WorkQueue
    device : Device
    make : callable
        Makes a runner of an open device; DeviceError if that does not answer.
    reopen : callable
        Gives an open device in place of one that failed; DeviceError if it does not answer.
    runner : Runner, optional
        One that was made of ``device`` already.

    Members
    -------
    rate : float or None
        Images per second while it works.
    mark : float
        When it began with the work that it is at.
    """

    def __init__(
        self,
        number: int,
        queue: WorkQueue,
        device: Device,
        make: Callable[[Device], Runner],
        reopen: Callable[[Device], Device],
        runner: Runner | None = None,
    ) -> None:
        self.number, self.device = number, device
        self.rate: float | None = None
        self.images = self.failures = self.tries = 0
        self.busy_seconds = self.mark = 0.0
        self.error = ""
        self.failed = False
        self._queue, self._make, self._reopen = queue, make, reopen
        self._runner = runner
        self._flying = deque[Work]()
        self._thread = threading.Thread(
            target=self._serve, name=f"slipstick-board-{number}", daemon=True
        )

    def start(self) -> None:
        """Begins to work."""
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Waits for the end of its work; one that hangs is left alone."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def in_flight(self) -> int:
        """Images that it has."""
        return sum(work.images for work in list(self._flying))

    def ahead_of(self, work: Work) -> tuple[int, int]:
        """Images of the first work that it has, and of all up to this one."""
        flying = list(self._flying)
        until = flying.index(work) + 1 if work in flying else len(flying)
        return flying[0].images if flying else 0, sum(each.images for each in flying[:until])

    def may_take(self) -> int:
        """Single images that it may have at a time."""
        if self.rate is None:
            return 2
        most = max(2, min(MOST_AHEAD, round(self.rate * _AHEAD_SECONDS)))
        return min(most, self._queue.fair_share(self.number))

    @property
    def state(self) -> BoardState:
        """Returns its present state."""
        if self.failed:
            return BoardState.FAILED
        return BoardState.WORKING if self._flying else BoardState.IDLE

    def status(self, name: str, target: str) -> BoardStatus:
        """Reports its state, its figures and its last error."""
        return BoardStatus(
            name=name,
            target=target,
            state=self.state,
            error=self.error,
            images=self.images,
            rate=self.rate or 0.0,
            busy_seconds=self.busy_seconds,
            failures=self.failures,
            in_flight=self.in_flight,
        )

    def _serve(self) -> None:
        while self._wait_for_work():
            try:
                self._stay(self._ready())
            except DeviceError as error:
                self._fail(error)
            except BaseException as error:
                # not the board's: a program's own, or a bug that must not be silent
                works, self._flying = list(self._flying), deque()
                for work in works[:1]:
                    self._queue.fail(self.number, work, error)
                self._queue.give_back(self.number, works[1:], error)

    def _wait_for_work(self) -> bool:
        """False: there will be no more."""
        queue = self._queue
        with queue.changed:
            while not queue.closed:
                if self.failed or queue.has_work(self.number):
                    return True
                queue.changed.wait(queue.seconds_to_steal())
        return False

    def _ready(self) -> Runner:
        """A runner that is loaded, after waiting if the board failed before."""
        queue = self._queue
        if self.failed:
            pause = _PAUSES[min(self.tries, len(_PAUSES) - 1)]
            with queue.changed:
                queue.changed.wait_for(lambda: queue.closed, pause)
                if queue.closed:
                    raise DeviceError("the pool is closed")
            with exclusive(self.device):
                self.device = self._reopen(self.device)
            self._runner = None
        if self._runner is None:
            self._runner = self._make(self.device)
        if self.failed:
            self.failed, self.tries = False, 0
            with queue.changed:
                queue.working.add(self.number)
                queue.changed.notify_all()
        return self._runner

    def _stay(self, runner: Runner) -> None:
        """Does what there is, of one kind; then other sessions may have the device."""
        begun = time.monotonic()
        while time.monotonic() - begun < _STAY_SECONDS or not self._is_awaited():
            work = self._queue.take(self.number)
            if work is None:
                return
            self._flying.append(work)
            self.mark = time.monotonic()
            if work.is_single:
                self._follow(runner, work, begun)
            else:
                with self._driving():
                    values = runner.infer_batch(work.feeds, work.wanted)
                self._finish(values)
        # the lock is not fair
        time.sleep(1e-3)

    def _driving(self) -> AbstractContextManager[None]:
        """A thread that drives one of several fast boards works in its turn."""
        return TURNS.taken() if getattr(self.device, "takes_turns", False) else nullcontext()

    def _is_awaited(self) -> bool:
        return sharing_of(self.device).waiters > 0

    def _follow(self, runner: Runner, first: Work, begun: float) -> None:
        """Single images, one behind the other."""
        source = _BoardSource(self, first, begun)
        with closing(runner.infer_stream(source)) as results:
            for values in results:
                self._finish(values)

    def _finish(self, values: Values) -> None:
        work = self._flying.popleft()
        now = time.monotonic()
        seconds, self.mark = now - self.mark, now
        self.busy_seconds += seconds
        self.images += work.images
        each = max(seconds / work.images, 1e-9)
        if self.rate is None:
            self.rate = 1 / each
        else:
            # of many images together the time counts as often as there are images
            weight = 1 - (1 - _SMOOTHING) ** work.images
            self.rate = 1 / ((1 - weight) / self.rate + weight * each)
        self._queue.finish(self.number, work, values)

    def _fail(self, error: DeviceError) -> None:
        queue = self._queue
        works, self._flying = list(self._flying), deque()
        self.busy_seconds += time.monotonic() - self.mark if works else 0.0
        if self.failed:
            self.tries += 1
        else:
            self.failures += 1
        self.failed, self.error = True, str(error)
        with queue.changed:
            queue.working.discard(self.number)
        queue.give_back(self.number, works, error)

    def take_single(self) -> Work | None:
        """The next image of a stream, if there is one."""
        work = self._queue.take(self.number, single=True)
        if work is not None:
            if not self._flying:
                self.mark = time.monotonic()
            self._flying.append(work)
        return work

    def wait_single(self, seconds: float, begun: float) -> bool:
        """Waits so many seconds for an image of this board's stream; tells whether one is there."""
        queue, deadline = self._queue, time.monotonic() + seconds
        with queue.changed:
            while not queue.closed:
                if self._is_awaited() and time.monotonic() - begun > _STAY_SECONDS:
                    return False
                if queue.has_work(self.number, single=True):
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                queue.changed.wait(left)
        return False


class _BoardSource:
    """Gives a board's stream its images: a ``Source`` over the queue.

    Parameters
    ----------
    board : Board
    first : Work
        Taken already.
    begun : float
        When the board's stay on its device began.
    """

    def __init__(self, board: Board, first: Work, begun: float) -> None:
        self._board, self._begun = board, begun
        self._next: Work | None = first

    @property
    def ahead(self) -> int:
        """Images that may be on their way, besides one; so many do not end the overlap of arrival
        and run, as ``wait`` would."""
        return max(1, self._board.may_take() - 1)

    def wait(self, seconds: float | None = None) -> bool:
        """Tells whether there is another image; with None one may still come within a moment."""
        if self._next is None:
            # an image that is alone must not wait for one that may follow
            patience = _IDLE_SECONDS if seconds is None else 0.0
            if patience == 0.0 and self._board.in_flight >= self._board.may_take():
                return False
            if self._board.wait_single(patience, self._begun):
                self._next = self._board.take_single()
        return self._next is not None

    def take(self) -> Values:
        """The image that ``wait`` has found."""
        work, self._next = self._next, None
        assert work is not None
        return dict(work.feeds)

    def check(self) -> None:
        """It ends without errors of its own."""

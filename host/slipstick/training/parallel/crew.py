"""Crews: workers that do jobs, and do those of workers that fail, hang or end."""

import threading
import time
import zlib
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, Self

from ...errors import DeviceError
from ..arithmetic import StepResult
from ..trainer import Trainer
from .compression import Compression
from .counter import seed_of
from .jobs import Job, JobResult, do_job

_PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each try to bring a worker back; the last one for all that follow."""
_AGAIN = 3
"""So often every worker may fail with the same job before the error is the caller's."""
PATIENCE_SECONDS = 1.0
"""A job that takes longer, and longer than others, is given to an idle worker as well."""
_PATIENCE_FACTOR = 4.0
_FIRST_FACTOR = 10.0
"""Multiple of the patience until a job's time is known: the first job is a whole batch."""
_JOIN_SECONDS = 1.0


class Crew(ABC):
    """Does jobs, in any order.

    Members
    -------
    size : int
        Jobs that it can do at a time.
    given_again : int
        How often a job was done again: its worker had failed, ended or been late.
    bytes_moved : int
        Written to devices and read from them; 0 where nobody counts.
    from_dram : int
        Steps, or parts of them, that ran from the DRAM of a device.
    """

    size: int

    @property
    def given_again(self) -> int:
        """Counts the jobs that were done again."""
        return 0

    @property
    def bytes_moved(self) -> int:
        """Written to devices and read from them."""
        return 0

    @property
    def from_dram(self) -> int:
        """Steps, or parts of them, that ran from the DRAM of a device."""
        return 0

    @abstractmethod
    def submit(self, job: Job) -> "Future[JobResult]":
        """Takes a job; the future's error is a ``DeviceError`` where no worker could do it."""

    def advance(self) -> None:
        """Called before somebody waits for a result; crews without threads work then."""
        return

    def gather(self, jobs: Sequence[Job]) -> list[StepResult]:
        """Does jobs, and waits for their gradients."""
        futures = [self.submit(job) for job in jobs]
        self.advance()
        return [future.result().step for future in futures]

    def messages(self, compression: Compression, step: int, jobs: Sequence[Job]) -> list[bytes]:
        """Does the jobs of a step's parts, and waits for messages of their gradients.

        Here gradients arrive as they are, and the host makes the messages: a device cannot.
        """
        results = self.gather(jobs)
        return [compression.compress(part, step, each) for part, each in enumerate(results)]

    def close(self) -> None:
        """Nothing is done any more."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class SerialCrew(Crew):
    """One trainer that does all jobs at once: for studies and tests.

    Parameters
    ----------
    trainer : Trainer
        Of the crew alone.
    """

    size = 1

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def submit(self, job: Job) -> "Future[JobResult]":
        """Does it."""
        future: Future[JobResult] = Future()
        future.set_result(do_job(self._trainer, job))
        return future


class ShuffledCrew(Crew):
    """Several workers pretended, whose jobs end in an order that a seed and the images choose.

    Parameters
    ----------
    trainer : Trainer
        Of the crew alone.
    size : int
    seed : int
    """

    def __init__(self, trainer: Trainer, size: int, seed: int) -> None:
        self.size = size
        self._trainer, self._seed = trainer, seed
        self._waiting: dict[int, tuple[Job, Future[JobResult]]] = {}

    def submit(self, job: Job) -> "Future[JobResult]":
        """It is done in ``advance``."""
        future: Future[JobResult] = Future()
        turn = seed_of(self._seed, zlib.crc32(job.images.tobytes()))
        while turn in self._waiting:
            turn = seed_of(turn)
        self._waiting[turn] = job, future
        return future

    def advance(self) -> None:
        """One of the jobs ends."""
        if self._waiting:
            job, future = self._waiting.pop(min(self._waiting))
            future.set_result(do_job(self._trainer, job))


class Worker(Protocol):
    """Does jobs for a crew, in a thread of its own.

    Members
    -------
    name : str
    bytes_moved : int
        Written to a device and read from it; 0 without one.
    from_dram : int
        Steps, or parts of them, that ran from its DRAM.
    """

    name: str

    @property
    def bytes_moved(self) -> int: ...

    @property
    def from_dram(self) -> int: ...

    def do(self, job: Job) -> JobResult:
        """Does a job; DeviceError or OSError if the worker has failed."""
        ...

    def reopen(self) -> None:
        """Brings the worker back after a failure; DeviceError if it does not answer."""
        ...

    def stop(self) -> None:
        """Whatever it does is wanted no more; called by another thread."""
        ...


class GoldenWorker:
    """A trainer in this process.

    Parameters
    ----------
    trainer : Trainer
        Of the worker alone.
    name : str
    """

    def __init__(self, trainer: Trainer, name: str = "golden") -> None:
        self._trainer, self.name = trainer, name

    @property
    def bytes_moved(self) -> int:
        """None."""
        return 0

    @property
    def from_dram(self) -> int:
        """None."""
        return 0

    def do(self, job: Job) -> JobResult:
        """Does a job."""
        return do_job(self._trainer, job)

    def reopen(self) -> None:
        """It does not fail."""

    def stop(self) -> None:
        """Its job ends by itself."""


@dataclass(eq=False)
class _Entry:
    """A job that is not done yet."""

    job: Job
    future: "Future[JobResult]"
    holders: dict[int, float] = field(default_factory=dict)
    """Start times of the job, by the numbers of the workers that have it."""
    blamed: Counter[int] = field(default_factory=Counter)
    error: BaseException | None = None


class ThreadCrew(Crew):
    """Workers in threads of this process.

    A job whose worker fails is given to another one. An idle worker also does a job that another
    one has had for long; the first result counts, and it is the same. If all workers hang, nothing
    comes back.

    Parameters
    ----------
    workers : sequence of Worker
    patience : float
        Seconds after which a job counts as late, if that is ``4`` times as long as jobs take; the
        first one has ``10`` times as long.

    Members
    -------
    errors : list of str
        Of each worker: why it failed last; empty if it never did.
    """

    def __init__(self, workers: Sequence[Worker], *, patience: float = PATIENCE_SECONDS) -> None:
        if not workers:
            raise ValueError("a crew must have at least one worker, not 0")
        self.size, self.errors = len(workers), [""] * len(workers)
        self._workers, self._patience = list(workers), patience
        self._changed = threading.Condition()
        self._waiting: deque[_Entry] = deque()
        self._held: list[_Entry] = []
        self._usual, self._closed, self._given_again = 0.0, False, 0
        self._threads = [
            threading.Thread(
                target=self._serve, args=(number,), name=f"slipstick-train-{number}", daemon=True
            )
            for number in range(self.size)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def given_again(self) -> int:
        """Jobs of workers that failed or were late."""
        return self._given_again

    @property
    def bytes_moved(self) -> int:
        """Adds up those of all workers."""
        return sum(worker.bytes_moved for worker in self._workers)

    @property
    def from_dram(self) -> int:
        """Adds up those of all workers."""
        return sum(worker.from_dram for worker in self._workers)

    def submit(self, job: Job) -> "Future[JobResult]":
        """Puts a job at the end."""
        entry = _Entry(job, Future())
        with self._changed:
            if self._closed:
                raise DeviceError("the crew is closed")
            self._waiting.append(entry)
            self._changed.notify_all()
        return entry.future

    def close(self) -> None:
        """Ends the threads; one that hangs is left alone."""
        with self._changed:
            self._closed = True
            lost = [*self._waiting, *self._held]
            self._waiting.clear()
            self._held.clear()
            self._changed.notify_all()
        for entry in lost:
            _settle(entry, error=DeviceError("the crew is closed"))
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _serve(self, number: int) -> None:
        worker, tries = self._workers[number], 0
        while True:
            if tries and not self._pause(tries):
                return
            entry = self._take(number)
            if entry is None:
                return
            begun = time.monotonic()
            try:
                if tries:
                    worker.reopen()
                result = worker.do(entry.job)
            except (DeviceError, OSError) as error:
                tries += 1
                self._give_back(number, entry, error)
            except BaseException as error:
                # not the worker's: a program's own, or a bug that must not be silent
                self._finish(number, entry, begun, error=error)
            else:
                tries = 0
                self._finish(number, entry, begun, result)

    def _pause(self, tries: int) -> bool:
        """Lets others go first after a failure; False: there is no more work."""
        seconds = _PAUSES[min(tries, len(_PAUSES) - 1)]
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)
            return not self._closed

    def _take(self, number: int) -> _Entry | None:
        """The next job, waiting for one; None: there will be no more."""
        with self._changed:
            while not self._closed:
                entry = self._next(number)
                if entry is not None:
                    entry.holders[number] = time.monotonic()
                    return entry
                self._changed.wait(self._patience / 4 if self._held else None)
        return None

    def _next(self, number: int) -> _Entry | None:
        if self._waiting:
            entry = self._waiting.popleft()
            self._held.append(entry)
            return entry
        late = max(self._patience, _PATIENCE_FACTOR * self._usual)
        if not self._usual:
            late = _FIRST_FACTOR * self._patience
        now = time.monotonic()
        for entry in self._held:
            if number not in entry.holders and now - max(entry.holders.values()) > late:
                self._given_again += 1
                return entry
        return None

    def _finish(
        self,
        number: int,
        entry: _Entry,
        begun: float,
        result: JobResult | None = None,
        error: BaseException | None = None,
    ) -> None:
        with self._changed:
            entry.holders.pop(number, None)
            first = entry in self._held
            if first:
                self._held.remove(entry)
                self._usual = max(self._usual / 2, time.monotonic() - begun)
            self._changed.notify_all()
        if first:
            _settle(entry, result, error)

    def _give_back(self, number: int, entry: _Entry, error: BaseException) -> None:
        hopeless = False
        with self._changed:
            self.errors[number] = str(error)
            entry.holders.pop(number, None)
            entry.blamed[number] += 1
            entry.error = error
            if entry not in self._held:
                return
            hopeless = all(entry.blamed[each] >= _AGAIN for each in range(self.size))
            if hopeless or not entry.holders:
                self._held.remove(entry)
            if not hopeless and not entry.holders:
                self._given_again += 1
                self._waiting.appendleft(entry)
            self._changed.notify_all()
        if hopeless:
            _settle(entry, error=error)


def _settle(
    entry: _Entry, result: JobResult | None = None, error: BaseException | None = None
) -> None:
    if not entry.future.set_running_or_notify_cancel():
        return
    if error is not None:
        entry.future.set_exception(error)
    elif result is not None:
        entry.future.set_result(result)

"""Dask's workers as a crew: a job whose process ends is done by another one."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from slipstick_rtl.config import Configuration

from ...cluster.opening import open_board_pool, open_cluster_pool
from ...errors import DeviceError
from .compression import Coding, Compression, Kept, Unsent
from .crew import Crew
from .jobs import Job, JobResult, Snapshot, WorkerSetup
from .on_worker import (
    BoardResult,
    compute,
    compute_message,
    compute_on_board,
    message_of,
    unsent_of,
)

if TYPE_CHECKING:
    from ...cluster.pool import ClusterPool

PATIENCE_SECONDS = 30.0
"""A job that takes longer, and longer than others, is given to another process as well."""
CHAIN_STEPS = 64
"""Steps after which unsent numbers are fetched: no worker's end costs more steps than these."""
_PATIENCE_FACTOR = 4.0
_AGAIN = 3
"""So many boards per worker may fail with the same job before the error is the caller's."""
_KEPT = 8
"""Snapshots that workers keep for jobs to come."""


@dataclass(frozen=True)
class _Coded:
    """Says how a part's job becomes a message.

    Parameters
    ----------
    coding : object
        A ``Coding`` that was shared.
    part, step : int
    before : Unsent or Kept
        What the part has not sent before.
    """

    coding: Any
    part: int
    step: int
    before: Unsent | Kept


@dataclass(frozen=True)
class KeptState:
    """A part's state that a worker keeps; Dask does the part's steps again if it is lost.

    Parameters
    ----------
    crew : ClusterCrew
    state : object
        Stands for a ``PartState`` in jobs.
    steps : int
        That would be done again.
    address : str
        Of the worker.
    """

    crew: "ClusterCrew"
    state: Any
    steps: int
    address: str = ""

    def fetch(self) -> "Future[Unsent]":
        """Brings to the host what the part has not sent."""
        return self.crew.fetch(self.state)


class _Entry:
    """A job that was given to the scheduler once or more."""

    def __init__(self, job: Job, coded: _Coded | None = None) -> None:
        self.job, self.coded, self.future = job, coded, Future[Any]()
        self.begun = self.last = time.monotonic()
        self.tries = self.errors = 0
        self.failed: list[str] = []
        """Addresses of workers whose boards failed."""


class ClusterCrew(Crew):
    """The workers of a Dask cluster.

    Parameters
    ----------
    pool : ClusterPool
        It stays open.
    setup : WorkerSetup
    patience : float
        Seconds after which a job counts as late, if that is ``4`` times as long as jobs take.
    on_boards : bool
        Whether the workers' boards multiply.

    Members
    -------
    sent, received : int
        Bytes that went to the cluster and came from it: contents of arrays and messages, without
        Dask's frames. What workers fetch from each other is not counted.
    """

    def __init__(
        self,
        pool: "ClusterPool",
        setup: WorkerSetup,
        *,
        patience: float = PATIENCE_SECONDS,
        on_boards: bool = False,
    ) -> None:
        self.size = pool.size
        self._compute = compute_on_board if on_boards else compute
        self._pool, self._setup, self._patience = pool, pool.share(setup), patience
        self._snapshots: OrderedDict[int, tuple[Snapshot, Any]] = OrderedDict()
        self._codings: dict[Coding, Any] = {}
        self._pending: set[_Entry] = set()
        self._lock, self._closing, self._usual = threading.Lock(), threading.Event(), 0.0
        self._again = self._bytes_moved = self._from_dram = self.sent = self.received = 0
        self._watcher = threading.Thread(target=self._watch, name="slipstick-crew", daemon=True)
        self._watcher.start()

    @property
    def given_again(self) -> int:
        """Jobs of workers that ended or were late, and of boards that failed."""
        return self._again + self._pool.given_again

    @property
    def bytes_moved(self) -> int:
        """Adds up those of all boards."""
        return self._bytes_moved

    @property
    def from_dram(self) -> int:
        """Adds up those of all boards."""
        return self._from_dram

    def submit(self, job: Job) -> "Future[JobResult]":
        """Gives a job to the scheduler."""
        return self._submit(_Entry(job))

    def messages(self, compression: Compression, step: int, jobs: Sequence[Job]) -> list[bytes]:
        """Does the jobs of a step's parts; their workers make the messages.

        What a part has not sent stays with the worker, as Dask's data, and the part's next job has
        it as an argument. After ``CHAIN_STEPS`` it is fetched, and goes out with the next job.
        """
        coding = self._share_coding(compression.coding)
        futures = [
            self._submit(_Entry(job, _Coded(coding, part, step, compression.unsent(part))))
            for part, job in enumerate(jobs)
        ]
        # nothing is noted before all have come: a step that fails may be taken again
        found: list[tuple[bytes, KeptState]] = [future.result() for future in futures]
        for part, (message, kept) in enumerate(found):
            compression.note(part, message, kept)
        if any(kept.steps >= CHAIN_STEPS for _, kept in found):
            compression.fetch()
        return [message for message, _ in found]

    def fetch(self, state: Any) -> "Future[Unsent]":
        """Brings to the host what a part has not sent."""
        if self._closing.is_set():
            raise DeviceError("the crew is closed: what its workers have kept is lost")
        coming: Future[Unsent] = self._pool.pick(unsent_of, state)
        coming.add_done_callback(self._count_unsent)
        return coming

    def _count_unsent(self, done: "Future[Unsent]") -> None:
        if done.exception() is None:
            with self._lock:
                self.received += _unsent_bytes(done.result())

    def _submit(self, entry: _Entry) -> "Future[Any]":
        with self._lock:
            self._pending.add(entry)
        entry.future.set_running_or_notify_cancel()
        self._give(entry)
        return entry.future

    def close(self) -> None:
        """Forgets what is left."""
        self._closing.set()
        self._watcher.join()
        with self._lock:
            self._pending.clear()
            self._snapshots.clear()

    def _give(self, entry: _Entry) -> None:
        entry.tries += 1
        entry.last = time.monotonic()
        job, kept = entry.job, None
        needed = self._setup, self._share(job.snapshot), job.images, job.labels, job.shifts
        self._count_sent(job.images.nbytes + job.labels.nbytes)
        if entry.coded is None:
            given = self._pool.submit_elsewhere(entry.failed, self._compute, *needed)
        else:
            kept = self._keep(entry, entry.coded, needed)
            given = self._pool.pick(message_of, kept.state)
        given.add_done_callback(lambda done: self._take(entry, done, kept))

    def _keep(self, entry: _Entry, coded: _Coded, needed: tuple[Any, ...]) -> KeptState:
        """Gives a job whose result stays with its worker."""
        before, steps, at = coded.before, 1, ""
        if isinstance(before, KeptState):
            # a job that is late or has failed may go elsewhere
            at = before.address if entry.tries == 1 else ""
            before, steps = before.state, before.steps + 1
        elif isinstance(before, Mapping):
            self._count_sent(_unsent_bytes(before))
        made = self._compute, coded.coding, coded.part, coded.step, before
        state = self._pool.keep_elsewhere(entry.failed, compute_message, *made, *needed, at=at)
        return KeptState(self, state, steps)

    def _count_sent(self, count: int) -> None:
        with self._lock:
            self.sent += count

    def _share(self, snapshot: Snapshot) -> Any:
        """A snapshot is sent once, whoever needs it."""
        with self._lock:
            known = self._snapshots.get(id(snapshot))
            if known is None:
                known = snapshot, self._pool.share(dict(snapshot))
                self._snapshots[id(snapshot)] = known
                self.sent += _array_bytes(snapshot)
                while len(self._snapshots) > max(_KEPT, 2 * self.size):
                    self._snapshots.popitem(last=False)
            return known[1]

    def _share_coding(self, coding: Coding) -> Any:
        if coding not in self._codings:
            self._codings[coding] = self._pool.share(coding)
        return self._codings[coding]

    def _take(self, entry: _Entry, done: "Future[Any]", kept: KeptState | None) -> None:
        error = done.exception()
        result = None if error is not None else done.result()
        if kept is not None and result is not None:
            result, address = result
            kept = replace(kept, address=address)
        if isinstance(result, BoardResult):
            with self._lock:
                self._bytes_moved += result.bytes_moved
                self._from_dram += result.from_dram
            if result.result is None:
                if self._may_fail_again(entry, result.address):
                    self._give(entry)
                    return
                error = DeviceError(result.problem)
            result = result.result
        with self._lock:
            self.received += _result_bytes(result)
            entry.errors += error is not None
            if entry not in self._pending or (error and entry.errors < entry.tries):
                return
            self._pending.remove(entry)
            self._usual = max(self._usual / 2, time.monotonic() - entry.begun)
        if result is None:
            entry.future.set_exception(error or DeviceError("the worker gave nothing"))
        else:
            entry.future.set_result(result if kept is None else (result, kept))

    def _may_fail_again(self, entry: _Entry, address: str) -> bool:
        """Notes a board that failed with a job; whether another one is to do it."""
        with self._lock:
            if entry not in self._pending or len(entry.failed) + 1 >= _AGAIN * self.size:
                return False
            entry.failed.append(address)
            entry.errors += 1
            self._again += 1
            return True

    def _watch(self) -> None:
        """Gives jobs that are late to other workers as well."""
        while not self._closing.wait(self._patience / 4):
            now = time.monotonic()
            with self._lock:
                limit = max(self._patience, _PATIENCE_FACTOR * self._usual)
                late = [each for each in self._pending if now - each.last > limit]
                late = [each for each in late if each.tries < self.size]
                self._again += len(late)
            for entry in late:
                self._give(entry)


def _array_bytes(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _unsent_bytes(unsent: Unsent) -> int:
    return sum(left.nbytes for left, _ in unsent.values())


def _result_bytes(result: JobResult | bytes | None) -> int:
    """A message, or the arrays of a result."""
    if result is None or isinstance(result, bytes):
        return len(result or b"")
    gradients = result.step.gradients.values()
    numbers = sum(each.weights.nbytes + each.bias.nbytes for each in gradients)
    return numbers + _array_bytes(result.snapshot)


@contextmanager
def open_cluster_crew(
    cluster: str,
    setup: WorkerSetup,
    *,
    device: str = "",
    configuration: Configuration | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[ClusterCrew]:
    """The workers of a cluster as a crew.

    Parameters
    ----------
    cluster : str
        ``local:N``, or the address of a scheduler.
    setup : WorkerSetup
    device : str
        Of each process of ``local:N``, where there is a configuration.
    configuration : Configuration, optional
        Boards of this hardware multiply; without it the workers' golden functions do.
    patience : float
        As for :class:`ClusterCrew`.

    Raises
    ------
    SlipstickError
        If there is no cluster, or no worker.
    """
    opening = (
        open_cluster_pool(cluster)
        if configuration is None
        else open_board_pool(cluster, device, configuration)
    )
    with opening as pool:
        on_boards = configuration is not None
        with ClusterCrew(pool, setup, patience=patience, on_boards=on_boards) as crew:
            yield crew

"""A command's connection to its workers: tasks go in, what they return comes out as futures."""

import itertools
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from weakref import WeakValueDictionary

import distributed
from distributed.scheduler import KilledWorker

from ..errors import DeviceError
from ..explore.explorer import interrupts_later
from .address import ClusterAddress
from .board import Board
from .resources import fingerprint_of, job_needs, version_of, version_resource
from .tasks import Files, same

CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0
"""Longest wait of a command for a worker that suits it: at its beginning, or when all are gone."""
_POLL_SECONDS = 1.0
_CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class WorkerState:
    """A worker, as the scheduler knows it.

    Parameters
    ----------
    address, name, host : str
    resources : mapping of float by name
    """

    address: str
    name: str
    host: str
    resources: Mapping[str, float]

    @property
    def version(self) -> str | None:
        """Finds its version of Slipstick; None: it is a worker of something else."""
        return version_of(self.resources)

    @property
    def label(self) -> str:
        """Names the worker, its computer, its version and its board for messages."""
        hardware = fingerprint_of(self.resources)
        version = f"slipstick {self.version}" if self.version else "no slipstick"
        return f"{self.name} on {self.host} ({version}, {_board(hardware)})"

    def suits(self, needs: Mapping[str, float]) -> bool:
        """Tells whether it can run tasks that need this."""
        return all(self.resources.get(name, 0) >= count for name, count in needs.items())


def _board(hardware: str | None) -> str:
    return f"a board with hardware {hardware}" if hardware else "no board"


@dataclass
class _Pending:
    """A task that was given to the scheduler."""

    result: "Future[Any]"
    task: distributed.Future
    needs: Mapping[str, float] = field(default_factory=dict)


class Cluster:
    """Workers, and the tasks that they have.

    Parameters
    ----------
    address : ClusterAddress
    board : Board, optional
        Of each worker process that is started here; by default they have no device.

    Members
    -------
    given_again : counter of int by task
        How often a task went to another worker because its own one had ended.

    Raises
    ------
    DeviceError
        If the scheduler does not answer.
    """

    def __init__(self, address: ClusterAddress, board: Board | None = None) -> None:
        self.address = address
        self.given_again: Counter[str] = Counter()
        self._pending: dict[str, _Pending] = {}
        self._kept: WeakValueDictionary[str, distributed.Future] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._closing = threading.Event()
        self._workers: list[WorkerState] = []
        self._last_seen: dict[str, float] = {}
        self._local: distributed.LocalCluster | None = None
        self._client: distributed.Client | None = None
        try:
            if address.is_local:
                # Dask leaves processes behind if it is interrupted here
                with interrupts_later():
                    self._local = _start_workers(address.processes, board or Board(None))
            self._client = _connect(self._local or address.text)
            self._client.subscribe_topic("all", self._note)
        except BaseException:
            self.close()
            raise
        self._watcher = threading.Thread(target=self._watch, name="cluster", daemon=True)
        self._watcher.start()

    @property
    def client(self) -> distributed.Client:
        """Dask's own connection."""
        assert self._client is not None
        return self._client

    @property
    def dashboard(self) -> str:
        """Address of Dask's page about the workers; empty if the scheduler has none."""
        return (self._client.dashboard_link or "") if self._client else ""

    def workers(self, needs: Mapping[str, float]) -> list[WorkerState]:
        """Returns the workers that suit, as they were a moment ago."""
        return [worker for worker in self._workers if worker.suits(needs)]

    @property
    def strangers(self) -> list[WorkerState]:
        """Workers of another version of Slipstick, or of none: they are given nothing."""
        return [worker for worker in self._workers if not worker.suits(job_needs())]

    def wait_for_workers(self, needs: Mapping[str, float], seconds: float | None = None) -> None:
        """Returns when a worker suits.

        Raises
        ------
        DeviceError
            If there is none after so many seconds, or a local one could not open its device.
        """
        limit = WORKER_SECONDS if seconds is None else seconds
        end = time.monotonic() + limit
        while True:
            self._look()
            if self.workers(needs):
                return
            self._check_local()
            if time.monotonic() > end:
                raise DeviceError(self._missing(needs, limit))
            time.sleep(min(0.1, limit / 10))

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        needs: Mapping[str, float],
        only: Iterable[str] = (),
    ) -> "Future[Any]":
        """Gives a task to the scheduler.

        Parameters
        ----------
        function : callable
            Of a module; it may run more than once.
        arguments : objects
            What ``share`` returned is given as the data.
        needs : mapping of float by name
            Resources of the worker.
        only : iterable of str
            Addresses of the workers that may run it, as long as one of them is there.

        Returns
        -------
        Future
            Its ``task`` names the task. Its error is a ``DeviceError`` if workers ended again and
            again, none suited for ``WORKER_SECONDS``, or the scheduler is gone.
        """
        key, task = self._start(function, arguments, needs, only)
        result: Future[Any] = Future()
        result.task = key  # pyright: ignore[reportAttributeAccessIssue]
        result.set_running_or_notify_cancel()
        with self._lock:
            self._pending[key] = _Pending(result, task, needs)
        task.add_done_callback(lambda done: self._take(key, done))
        return result

    def keep(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        needs: Mapping[str, float],
        only: Iterable[str] = (),
    ) -> Any:
        """Gives a task to the scheduler whose result stays with its worker.

        Returns
        -------
        object
            An argument for ``submit`` and ``keep``. As long as somebody holds it, the task is run
            again if the worker ends, and so are those that it needs.
        """
        key, task = self._start(function, arguments, needs, only)
        with self._lock:
            self._kept[key] = task
        return task

    def _start(
        self,
        function: Callable[..., Any],
        arguments: Iterable[Any],
        needs: Mapping[str, float],
        only: Iterable[str],
    ) -> tuple[str, distributed.Future]:
        key = f"{function.__name__}-{os.getpid()}-{id(self):x}-{next(self._numbers)}"
        chosen = list(only)
        task = self.client.submit(
            function,
            *arguments,
            key=key,
            resources=dict(needs),
            pure=False,
            **({"workers": chosen, "allow_other_workers": True} if chosen else {}),
        )
        return key, task

    def share(self, data: Any) -> Any:
        """Returns an argument for ``submit``: its data is sent once, and workers keep it."""
        key = f"shared-{os.getpid()}-{id(self):x}-{next(self._numbers)}"
        # the scheduler keeps it, so that it outlives the workers that have it
        return self.client.submit(same, data, key=key, resources=job_needs(), pure=False)

    def share_files(self, paths: Iterable[str]) -> Any:
        """Returns an argument for ``tasks.call``: files of this machine."""
        files: Files = [(path, os.path.basename(path), _content(path)) for path in paths]
        return self.share(files)

    def forget(self) -> None:
        """Cancels all tasks."""
        with self._lock:
            pending, self._pending = list(self._pending.values()), {}
        for entry in pending:
            with suppress(Exception):
                entry.task.cancel()
            entry.result.set_exception(CancelledError())

    def close(self) -> None:
        """Cancels what is left, and ends the workers that were started here."""
        self._closing.set()
        with suppress(Exception):
            self.forget()
        if self._client is not None:
            with suppress(Exception):
                self._client.close(timeout=_CLOSE_SECONDS)
        if self._local is not None:
            with suppress(Exception):
                self._local.close(timeout=_CLOSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _take(self, key: str, done: distributed.Future) -> None:
        """In a thread of the client: a task has ended."""
        try:
            value, error = done.result(), None
        except KilledWorker as killed:
            value, error = None, DeviceError(_killed(killed))
        except BaseException as other:
            value, error = None, other
        if isinstance(error, CancelledError) or type(error).__name__.endswith("CancelledError"):
            error = DeviceError(f"cluster {self.address.text}: the scheduler does not answer")
        with self._lock:
            entry = self._pending.pop(key, None)
        if entry is None:
            return
        if error is not None:
            entry.result.set_exception(error)
        else:
            entry.result.set_result(value)

    def _note(self, event: tuple[float, Any]) -> None:
        """Notes which tasks a worker had that ended, if the scheduler tells of one."""
        message = event[1]
        if isinstance(message, Mapping) and message.get("action") == "remove-worker":
            running = set(message.get("processing-tasks", ()))
            lost = running.union(message.get("lost-computed-tasks", ()))
            with self._lock:
                self.given_again.update(key for key in running if key in self._pending)
                self.given_again.update(key for key in lost if key in self._kept)

    def _watch(self) -> None:
        """In a thread: tasks that no worker suits must not wait for ever."""
        while not self._closing.wait(_POLL_SECONDS):
            with suppress(Exception):
                self._look()
            now = time.monotonic()
            with self._lock:
                needed = {tuple(sorted(each.needs.items())) for each in self._pending.values()}
            for needs in needed:
                name = repr(needs)
                if self.workers(dict(needs)) or name not in self._last_seen:
                    self._last_seen[name] = now
                elif now - self._last_seen[name] > WORKER_SECONDS:
                    self._give_up(dict(needs))

    def _give_up(self, needs: Mapping[str, float]) -> None:
        with self._lock:
            lost = {key: each for key, each in self._pending.items() if each.needs == needs}
            for key in lost:
                del self._pending[key]
        for each in lost.values():
            with suppress(Exception):
                each.task.cancel()
            each.result.set_exception(DeviceError(self._missing(needs, WORKER_SECONDS)))

    def _look(self) -> None:
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        self._workers = [
            WorkerState(address, str(each["name"]), str(each["host"]), each["resources"])
            for address, each in known.items()
        ]

    def _check_local(self) -> None:
        """DeviceError if the workers of this machine could not open their device."""
        if self._local is None or self._client is None or not self._workers:
            return
        problems: Any = self._client.run(_problem)
        found = [problem for problem in problems.values() if problem]
        if len(found) == len(self._workers):
            raise DeviceError(found[0])

    def _missing(self, needs: Mapping[str, float], seconds: float) -> str:
        """Says why nothing is done, and what to do."""
        start = f"cluster {self.address.text} has no worker"
        hardware = fingerprint_of(needs)
        board = f" with a board of hardware {hardware}" if hardware else ""
        wanted = f" of {version_resource()}{board}"
        others = "; ".join(worker.label for worker in self._workers) or "no other"
        return (
            f"{start}{wanted} after {seconds:g} s; it has {others}:"
            " slipstick worker --scheduler ADDRESS --device DEVICE starts one"
        )


def _problem(dask_worker: distributed.Worker) -> str:
    board = dask_worker.plugins.get(Board.name)
    return board.problem if isinstance(board, Board) else ""


def _start_workers(processes: int, board: Board) -> distributed.LocalCluster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            plugins=(board,),
            # the limits of Dask are for its own data
            memory_limit=0,
            silence_logs=False,
        )


def _connect(where: "distributed.LocalCluster | str") -> distributed.Client:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return distributed.Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(
            f"cluster {where} does not answer within {CONNECT_SECONDS:g} s: dask scheduler starts"
            f" one ({' '.join(str(error).split()) or type(error).__name__})"
        ) from None


def _killed(killed: KilledWorker) -> str:
    last = killed.last_worker
    name = getattr(last, "name", last)
    return (
        f"{killed.allowed_failures + 1} workers ended one after the other with the same task; the"
        f" last one was {name}"
    )


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()

"""Trainers and workers for tests of training on many devices."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from slipstick.errors import DeviceError
from slipstick.training.data import LabelledSet
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.network import initial_parameters
from slipstick.training.parallel import on_cluster
from slipstick.training.parallel.crew import GoldenWorker
from slipstick.training.parallel.jobs import Job, JobResult, Snapshot, WorkerSetup
from slipstick.training.trainer import Trainer
from training_networks import small_network, small_pictures

NETWORK = small_network()
INITIAL = initial_parameters(NETWORK, 0)
SETUP = WorkerSetup(NETWORK)
BATCH = 32
SHIFT = 4


def batches(count: int) -> list[LabelledSet]:
    """So many batches of pictures."""
    data = small_pictures(BATCH * count)
    return [data.at(np.arange(BATCH * step, BATCH * (step + 1))) for step in range(count)]


def alone(steps: int, momentum: int = 0) -> dict[str, np.ndarray]:
    """What one trainer with the whole batches learns."""
    trainer = Trainer(NETWORK, Int8Arithmetic(16, momentum), INITIAL)
    learn(trainer, steps)
    return trainer.arrays()


def learn(trainer: Trainer, steps: int) -> None:
    """Takes the steps of ``alone``."""
    for batch in batches(steps):
        trainer.step(batch.images, batch.labels, SHIFT)


def check_equal(found: Snapshot, wanted: Snapshot) -> None:
    """Compares all that ``wanted`` has."""
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


class FatefulWorker(GoldenWorker):
    """Asks before each job what becomes of it.

    Parameters
    ----------
    fate : callable
        Given the number of the job, 0 for the worker's first: it may raise, or wait.
    setup : WorkerSetup
    """

    def __init__(self, fate: Callable[[int], object], setup: WorkerSetup = SETUP) -> None:
        super().__init__(setup.trainer(), "fateful")
        self.jobs, self.reopened, self._fate = 0, 0, fate

    def do(self, job: Job) -> JobResult:
        """Does a job, if its fate lets it."""
        number, self.jobs = self.jobs, self.jobs + 1
        self._fate(number)
        return super().do(job)

    def reopen(self) -> None:
        """Counts."""
        self.reopened += 1


def fine(number: int) -> None:
    """Nothing happens."""


def broken(number: int) -> None:
    """Every job fails."""
    raise DeviceError("no answer")


def every(count: int) -> Callable[[int], None]:
    """Each job of so many fails, the first not."""

    def fate(number: int) -> None:
        if number % count == count - 1:
            raise DeviceError("an error now and then")

    return fate


def hanging(after: int, until: threading.Event) -> Callable[[int], None]:
    """Hangs at one job until an event."""

    def fate(number: int) -> None:
        if number == after:
            until.wait()

    return fate


class Gates:
    """Jobs that end when a test lets them, each by itself: workers of any speed, without clocks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[int] = set()
        self.begun: list[int] = []

    def pass_through(self, label: int) -> None:
        """Waits until a job's gate is open."""
        with self._changed:
            self.begun.append(label)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: label in self._open, 60)

    def open(self, *labels: int) -> None:
        """Lets jobs end."""
        with self._changed:
            self._open.update(labels)
            self._changed.notify_all()

    def wait_for(self, labels: Sequence[int]) -> None:
        """Until all of these have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: set(labels) <= set(self.begun), 60)


def fail_on_board(
    setup: WorkerSetup,
    snapshot: Snapshot,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: tuple[int, ...],
) -> on_cluster.BoardResult:
    """In a worker's process: its board fails, once per marker that is there."""
    from slipstick.cluster.tasks import own_board

    for marker in sorted(Path(os.environ["SLIPSTICK_TEST_MARKERS"]).glob("fail*")):
        try:
            marker.unlink()
        except FileNotFoundError:
            continue
        try:
            own_board().use(lambda device: broken(0))
        except DeviceError as error:
            return on_cluster.BoardResult(own_board().address, problem=str(error))
    return on_cluster.compute_on_board(setup, snapshot, images, labels, shifts)


def compute_or_die(
    setup: WorkerSetup,
    snapshot: Snapshot,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: tuple[int, ...],
) -> JobResult:
    """In a worker's process: ends it with signal 9, once per marker that is there."""
    for marker in sorted(Path(os.environ["SLIPSTICK_TEST_MARKERS"]).glob("die*")):
        try:
            marker.unlink()
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    return on_cluster.compute(setup, snapshot, images, labels, shifts)


def compute_late(
    setup: WorkerSetup,
    snapshot: Snapshot,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: tuple[int, ...],
) -> JobResult:
    """In a worker's process: the job that finds a marker waits until a test takes it away."""
    marker = Path(os.environ["SLIPSTICK_TEST_MARKERS"]) / "late"
    waiting = marker.with_name("waiting")
    with suppress(FileNotFoundError):
        marker.rename(waiting)
        while waiting.exists():
            time.sleep(0.02)
    return on_cluster.compute(setup, snapshot, images, labels, shifts)


def process_of(state: object) -> int:
    """In a worker's process: the one that keeps this."""
    return os.getpid()

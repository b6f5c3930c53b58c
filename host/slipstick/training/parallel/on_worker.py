"""In the process of a cluster's worker: jobs in golden functions or on its board, and messages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...devices import Device
from ...errors import DeviceError
from ..trainer import Trainer
from .compression import Coding, Unsent
from .devices import DeviceWorker
from .jobs import Job, JobResult, Snapshot, WorkerSetup, do_job


def compute(
    setup: WorkerSetup,
    snapshot: Snapshot,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: tuple[int, ...],
) -> JobResult:
    """Does a job."""
    return do_job(_trainer(setup), Job(snapshot, images, labels, shifts))


@lru_cache(maxsize=4)
def _trainer(setup: WorkerSetup) -> Trainer:
    """One per process: its workers have one thread."""
    return setup.trainer()


@dataclass(frozen=True)
class BoardResult:
    """Holds what a job on a worker's board gives.

    Parameters
    ----------
    address : str
        Of the worker.
    result : JobResult, message or None
        None: the board failed.
    bytes_moved : int
        Written to the board and read from it.
    from_dram : int
        Steps, or parts of them, that ran from its DRAM.
    problem : str
        Why it failed; empty if it did not.
    """

    address: str
    result: JobResult | bytes | None = None
    bytes_moved: int = 0
    from_dram: int = 0
    problem: str = ""


def compute_on_board(
    setup: WorkerSetup,
    snapshot: Snapshot,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: tuple[int, ...],
) -> BoardResult:
    """Does a job with the worker's board."""
    from ...cluster.tasks import own_board

    board, job = own_board(), Job(snapshot, images, labels, shifts)

    def do(device: Device) -> BoardResult:
        worker = _board_worker(setup, device)
        bytes_before, steps_before = worker.bytes_moved, worker.from_dram
        result = worker.do(job)
        moved, steps = worker.bytes_moved - bytes_before, worker.from_dram - steps_before
        return BoardResult(board.address, result, moved, steps)

    try:
        return board.use(do)
    except DeviceError as error:
        return BoardResult(board.address, problem=str(error))


@lru_cache(maxsize=1)
def _board_worker(setup: WorkerSetup, device: Device) -> DeviceWorker:
    """One per process: its board is opened again by the board itself."""
    return DeviceWorker(setup, device, lambda broken: broken, "board")


@dataclass(frozen=True)
class PartState:
    """Holds what stays with a worker after a part's step.

    Parameters
    ----------
    found : bytes or BoardResult
        The message: the host fetches it alone.
    left : Unsent or callable
        What the part has not sent; a callable computes it if the board has failed.
    """

    found: bytes | BoardResult
    left: Unsent | Callable[[], Unsent]


def compute_message(
    compute: Callable[..., JobResult | BoardResult],
    coding: Coding,
    part: int,
    step: int,
    before: Unsent | PartState,
    *needed: Any,
) -> PartState:
    """Does a part's job and makes the message: a pure function of what it is given.

    Parameters
    ----------
    compute : callable
        Given ``needed``, as ``compute`` or ``compute_on_board``.
    coding : Coding
    part, step : int
    before : Unsent or PartState
        After the part's previous step.
    needed : objects
        As for ``compute``.
    """
    found = compute(*needed)
    result = found.result if isinstance(found, BoardResult) else found
    if isinstance(result, JobResult):
        unsent = unsent_of(before) if isinstance(before, PartState) else before
        message, left = coding.encode(part, step, result.step, unsent)
        return PartState(_with_message(found, message), left)
    # Dask may do a step again whose state was lost: the next one must not depend on this board
    assert isinstance(found, BoardResult)
    return PartState(found, partial(_left_in_golden, coding, part, step, before, *needed))


def _with_message(found: JobResult | BoardResult, message: bytes) -> bytes | BoardResult:
    return replace(found, result=message) if isinstance(found, BoardResult) else message


def _left_in_golden(
    coding: Coding, part: int, step: int, before: Unsent | PartState, *needed: Any
) -> Unsent:
    return unsent_of(compute_message(compute, coding, part, step, before, *needed))


def message_of(state: PartState) -> tuple[bytes | BoardResult, str]:
    """Returns what the host fetches after each step, and whose worker has the rest."""
    from ...cluster.tasks import own_board

    return state.found, own_board().address


def unsent_of(state: PartState) -> Unsent:
    """Returns what the host fetches for a checkpoint."""
    return state.left() if callable(state.left) else state.left

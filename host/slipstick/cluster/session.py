"""A program on the boards of a cluster: images in, outputs in their order."""

import hashlib
import math
import queue
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..errors import DeviceError
from ..program import Program
from ..program.slip_file import encode
from ..runtime.feeds import prepare
from .board import Answer
from .checks import check_independent
from .connection import Cluster
from .resources import board_needs
from .tasks import infer, load

TASK_SECONDS = 0.5
"""Seconds of computing in a task, which costs about 0.01 s besides."""
FIRST_IMAGES = 16
"""Images of a task, before it is known how long an image takes."""
MOST_IMAGES = 1024
MOST_BYTES = 1 << 24
"""Inputs of a task."""
AHEAD = 2
"""Tasks per board that are given to the scheduler."""
ATTEMPTS = 5
"""Boards that may fail with the same images, one after the other."""
FAILURES = 3
"""After so many in a row a board is given no more, if there is another one."""


@dataclass(frozen=True)
class Piece:
    """Some images that one task has.

    Parameters
    ----------
    first, count : int
    failed : tuple of str
        Addresses of the workers whose boards failed with them.
    """

    first: int
    count: int
    failed: tuple[str, ...] = ()

    def halves(self, address: str) -> "Iterator[Piece]":
        """Yields the pieces that are tried next, after the board at an address failed.

        A board that fails once in 100 images ends with 50 of them, never with 200.
        """
        failed, half = (*self.failed, address), self.count // 2
        for first, count in ((0, half), (half, self.count - half)):
            if count:
                yield Piece(self.first + first, count, failed)


class ClusterSession:
    """Runs a network's images on all boards of a cluster that have the program's hardware.

    Outputs are those of one device, bit for bit: no image depends on another one.

    Parameters
    ----------
    cluster : Cluster
    program : Program

    Members
    -------
    program : Program
    cluster : Cluster
    boards : int
        Most that there were at a time.
    busy_seconds : float
        That boards were computing, all together.
    retried : int
        Images that were run again, since a board failed or a worker ended.
    last_cycles : int or None

    Raises
    ------
    UnsupportedError
        If the network keeps something from image to image.
    DeviceError
        If no worker has such a board, or none takes the program.
    """

    def __init__(self, cluster: Cluster, program: Program) -> None:
        check_independent(program)
        self.program = program
        self.boards, self.busy_seconds, self.retried = 0, 0.0, 0
        self.last_cycles: int | None = None
        self.cluster = cluster
        self._needs = board_needs(program.fingerprint)
        data = encode(program)
        self._key = hashlib.sha256(data).hexdigest()
        cluster.wait_for_workers(self._needs)
        self._data = cluster.share(data)
        self._image_seconds = 0.0
        self._load()

    def _load(self) -> None:
        """Puts the program on every board that is there."""
        tasks = [
            self.cluster.submit(load, self._data, self._key, needs=self._needs, only=[each.address])
            for each in self.cluster.workers(self._needs)
        ]
        problems = []
        for task in tasks:
            answer: Answer = task.result()
            if not answer.problem:
                continue
            problems.append(f"{answer.board}: {answer.problem}")
        if len(problems) == len(tasks):
            raise DeviceError(problems[0])
        self.boards = len(tasks)

    def run_batch(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        advance: Callable[[int], object] = int,
    ) -> list[np.ndarray]:
        """As ``InferenceSession.run_batch``.

        Raises
        ------
        InputError
            If an input is not as it must be.
        DeviceError
            If some images failed on ``ATTEMPTS`` boards, or no worker is left.
        """
        names = tuple(self.program.outputs if output_names is None else output_names)
        inputs = prepare(self.program, input_feed)
        run = _Run(self, inputs, names, advance)
        try:
            outputs = run.outputs()
        finally:
            self.busy_seconds += run.busy_seconds
            self.retried += run.retried
        self.last_cycles = run.cycles
        return outputs

    def close(self) -> None:
        """Ends the connection, and the workers that belong to it."""
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Run:
    """One batch of images, until the last one is there."""

    def __init__(
        self,
        session: ClusterSession,
        inputs: Mapping[str, np.ndarray],
        names: tuple[str, ...],
        advance: Callable[[int], object],
    ) -> None:
        self._session, self._inputs, self._names, self._advance = session, inputs, names, advance
        self._count = len(next(iter(inputs.values())))
        self._image_bytes = sum(value[:1].nbytes for value in inputs.values())
        self._arrived: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._running: dict[Future[Any], Piece] = {}
        self._next = 0
        self._again: list[Piece] = []
        self._results: dict[int, tuple[np.ndarray, ...]] = {}
        self._failures: Counter[str] = Counter()
        self._images_done = 0
        self.busy_seconds, self.retried = 0.0, 0
        self.cycles: int | None = None

    def outputs(self) -> list[np.ndarray]:
        """Runs all images."""
        try:
            while self._images_done < self._count:
                self._give()
                # a queue that waits with no end cannot be interrupted on every system
                try:
                    self._take(self._arrived.get(timeout=1.0))
                except queue.Empty:
                    continue
        finally:
            self._session.cluster.forget()
        parts = [self._results[first] for first in sorted(self._results)]
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _give(self) -> None:
        """Gives each board enough to do."""
        boards = len(self._session.cluster.workers(self._session._needs))
        self._session.boards = max(self._session.boards, boards)
        for piece in self._pieces(AHEAD * max(1, boards) - len(self._running), max(1, boards)):
            part = slice(piece.first, piece.first + piece.count)
            images = {name: value[part] for name, value in self._inputs.items()}
            task = self._session.cluster.submit(
                infer,
                self._session._data,
                self._session._key,
                images,
                self._names,
                needs=self._session._needs,
                only=self._good_workers(piece),
            )
            self._running[task] = piece
            task.add_done_callback(self._arrived.put)

    def _pieces(self, most: int, boards: int) -> Iterator[Piece]:
        for _ in range(most):
            if self._again:
                yield self._again.pop()
            elif self._next < self._count:
                piece = Piece(self._next, self._size(boards))
                self._next += piece.count
                yield piece

    def _size(self, boards: int) -> int:
        """Images of the next task: so many that it takes a while, but all boards end together."""
        left = self._count - self._next
        seconds = self._session._image_seconds
        wanted = FIRST_IMAGES if not seconds else int(TASK_SECONDS / seconds)
        wanted = max(1, min(wanted, MOST_IMAGES, MOST_BYTES // max(1, self._image_bytes)))
        last = max(math.ceil(left / (AHEAD * boards)), wanted // 8)
        return max(1, min(wanted, last, left))

    def _good_workers(self, piece: Piece) -> list[str]:
        """Addresses of the workers whose boards do not fail; none: any will do."""
        bad = {address for address, count in self._failures.items() if count >= FAILURES}
        bad.update(piece.failed)
        if not bad:
            return []
        found = self._session.cluster.workers(self._session._needs)
        return [worker.address for worker in found if worker.address not in bad]

    def _take(self, task: "Future[Any]") -> None:
        piece = self._running.pop(task)
        again = self._session.cluster.given_again.pop(getattr(task, "task", ""), 0)
        self.retried += again * piece.count
        answer: Answer = task.result()
        if answer.problem:
            self._failed(piece, answer)
            return
        self._failures[answer.address] = 0
        self._results[piece.first] = answer.outputs
        self._images_done += piece.count
        self.busy_seconds += answer.seconds
        self.cycles = answer.cycles
        self._session._image_seconds = answer.seconds / piece.count
        self._advance(piece.count)

    def _failed(self, piece: Piece, answer: Answer) -> None:
        self._failures[answer.address] += 1
        if len(piece.failed) + 1 >= ATTEMPTS:
            last = piece.first + piece.count - 1
            raise DeviceError(
                f"images {piece.first} to {last} failed {ATTEMPTS} times, the last time on"
                f" {answer.board}: {answer.problem}"
            )
        self.retried += piece.count
        self._again.extend(piece.halves(answer.address))

"""Runs a program on all boards of a pool: the same interface as ``Execution``."""

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from ...devices.base import Device
from ...errors import DeviceError
from ...program import Program
from ...targets import describe
from ..arrivals import Source
from ..feeds import joined
from .board import HOPELESS, Board, BoardStatus, Runner
from .work import Batch, Values, WorkQueue

_LOOK_SECONDS = 0.2
"""So often a caller looks whether any board is left."""
_LEAVE_SECONDS = 2.0
"""Longest wait of ``close`` for the boards; one that hangs is left alone."""
_STREAMED = 32
"""Images of a stream per board that wait for their results."""


class PoolExecution:
    """Spreads images over boards by each one's measured rate; results come in order.

    A board that fails is taken out, its images go to the others, and it is tried again until it
    answers. A program that keeps something from run to run stays on the first board.

    Parameters
    ----------
    program : Program
        Its inputs and outputs; the first board's.
    names : sequence of str
        One per board, for messages.
    devices : sequence of Device
    make : callable
        Makes the execution of board number i on an open device.
    reopen : callable
        Gives an open device in place of the one with which board number i failed.
    runners : sequence of Runner, optional
        Executions that exist already, one per board.

    Raises
    ------
    SlipstickError
        If an execution cannot be made.
    """

    def __init__(
        self,
        program: Program,
        names: Sequence[str],
        devices: Sequence[Device],
        make: Callable[[int, Device], Runner],
        reopen: Callable[[int, Device], Device],
        runners: Sequence[Runner] | None = None,
    ) -> None:
        self.program, self._names = program, tuple(names)
        self._targets = [describe(device.configuration) for device in devices]
        self._queue = WorkQueue()
        made = runners or [make(number, device) for number, device in enumerate(devices)]
        self._first = made[0]
        self._boards = [
            Board(
                number,
                self._queue,
                device,
                lambda opened, number=number: make(number, opened),
                lambda broken, number=number: reopen(number, broken),
                runner,
            )
            for number, (device, runner) in enumerate(zip(devices, made, strict=True))
        ]
        self._queue.boards.extend(self._boards)
        self._queue.working.update(range(len(self._boards)))
        for board in self._boards:
            board.start()

    @property
    def last_cycles(self) -> int | None:
        """None: many boards' cycles are not those of one."""
        return None

    @property
    def retried(self) -> int:
        """Images that had to be computed again since a board failed."""
        return self._queue.retried

    @property
    def waiting(self) -> int:
        """Images that no board has taken yet."""
        with self._queue.changed:
            return self._queue.waiting

    def boards(self) -> list[BoardStatus]:
        """Lists the state of each board."""
        return [
            board.status(name, target)
            for name, target, board in zip(self._names, self._targets, self._boards, strict=True)
        ]

    def submit(self, inputs: Mapping[str, np.ndarray]) -> "Future[Values]":
        """Puts one image at the end of what waits; returns where its values will be."""
        self._check()
        return self._queue.submit(dict(inputs)).future

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """As ``Execution.infer_batch``; DeviceError if no board is left."""
        wanted = self.program.outputs if wanted is None else wanted
        if self.program.variables:
            return self._first.infer_batch(dict(inputs), wanted, advance)
        self._check()
        batch = Batch(dict(inputs), wanted, self.program.batch)
        self._queue.add(batch)
        try:
            results: list[Values] = []
            while batch.remaining or len(results) < len(batch.parts):
                if len(results) == len(batch.parts):
                    self._wait_for_part(batch, len(results))
                    continue
                span, work = batch.parts[len(results)]
                results.append(self._result(work.future))
                advance(span.stop - span.start)
        except BaseException:
            self._queue.drop(batch)
            raise
        return joined(results)

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """As ``Execution.infer_stream``; results in the order of the samples."""
        if self.program.variables:
            yield from self._first.infer_stream(source, consumer)
            return
        waiting = deque[Future[Values]]()
        most = _STREAMED * len(self._boards)
        try:
            while waiting or source.wait():
                if len(waiting) < most and source.wait(0.0):
                    waiting.append(self.submit(source.take()))
                elif waiting[0].done() or len(waiting) == most:
                    yield self._result(waiting.popleft())
                elif source.wait(1e-3):
                    continue
                elif waiting[0].done() or not self._wait_a_moment(waiting[0]):
                    yield self._result(waiting.popleft())
            source.check()
        finally:
            for future in waiting:
                future.cancel()

    def reset_state(self) -> None:
        """The next inference begins as the first one did."""
        self._first.reset_state()

    def close(self) -> None:
        """Ends the boards' threads; what waits ends with a DeviceError."""
        self._queue.close()
        self._queue.fail_all(DeviceError(f"the session of {self.program.name} is closed"))
        deadline = time.monotonic() + _LEAVE_SECONDS
        for board in self._boards:
            board.join(max(0.0, deadline - time.monotonic()))

    def _wait_for_part(self, batch: Batch, known: int) -> None:
        """Until a board has taken another part of a batch."""
        with self._queue.changed:
            self._queue.changed.wait_for(
                lambda: len(batch.parts) > known or not batch.remaining, _LOOK_SECONDS
            )
        self._check_boards()

    def _wait_a_moment(self, future: "Future[Values]") -> bool:
        """Waits a moment; tells whether an image is still on its way."""
        try:
            future.exception(1e-3)
        except TimeoutError:
            self._check_boards()
            return True
        return False

    def _result(self, future: "Future[Values]") -> Values:
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                self._check_boards()

    def _check(self) -> None:
        if self._queue.closed:
            raise DeviceError(f"the session of {self.program.name} is closed")

    def _check_boards(self) -> None:
        """All that waits fails if no board is left that could do it."""
        if all(board.failed and board.tries >= HOPELESS for board in self._boards):
            told = "; ".join(
                f"{name}: {board.error}"
                for name, board in zip(self._names, self._boards, strict=True)
            )
            one = len(self._boards) == 1
            self._queue.fail_all(
                DeviceError(told if one else f"none of {len(self._boards)} boards works: {told}")
            )

"""Lets boards of a pool fail while images run: none may be lost, doubled, swapped or wrong."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration

from ...devices import Device
from ...devices.model import BatchCore, ModelDevice
from ...errors import DeviceError
from ...program import Program
from ...session import InferenceSession
from .board_process import BoardProcess

BOARDS = 4
_DISTINCT = 500
_BATCH = 250
_ERROR_RATE = 0.05
_PAUSE_SECONDS = (0.3, 1.0)
"""Between two failures."""
_DOWN_SECONDS = (0.2, 1.5)


class Failure(StrEnum):
    """Failures of a board."""

    KILLED = "killed"
    """Its process ends; later it starts anew, with nothing loaded."""
    HUNG = "hung"
    """Its process stands still for a while, with what it has received."""

    ERRING = "erring"
    """Every twentieth run of it, or so, ends with an error."""


class _ErringDevice(ModelDevice):
    """A golden model of which some runs fail.

    Parameters
    ----------
    configuration : Configuration
    seed : int
    """

    def __init__(self, configuration: Configuration, seed: int) -> None:
        super().__init__(configuration)
        self._random = random.Random(seed)

    def batch_core(self, batch: int, *, shared: bool = True) -> "BatchCore":
        """DeviceError now and then."""
        if self._random.random() < _ERROR_RATE:
            raise DeviceError("an error at random")
        return super().batch_core(batch, shared=shared)

    def push(self, *, if_idle: bool = False) -> None:
        """The same for single images."""
        if self._random.random() < _ERROR_RATE:
            raise DeviceError("an error at random")
        super().push(if_idle=if_idle)


def failing_pool(program: Program, failure: Failure, images: int, seed: int = 1) -> dict[str, Any]:
    """Runs images on golden boards in processes of their own, of which one after the other fails.

    A third of the images runs in batches, a third as a stream, a third as single images.

    Returns
    -------
    dict
        ``lost``, ``wrong`` (which counts those that were swapped), ``doubled``, ``retried``, and
        how often a board ``failed``.
    """
    name = program.inputs[0]
    shape = program.tensors[name].shape[1:]
    x = np.random.default_rng(seed).integers(-128, 128, (_DISTINCT, *shape), dtype=np.int8)
    with InferenceSession(program, "model") as golden:
        expected = golden.run_batch(None, {name: x})[0]
    with ExitStack() as stack:
        boards: list[BoardProcess] = []
        devices: list[str | Device] = []
        if failure is Failure.ERRING:
            devices += [_ErringDevice(program.hardware, seed + k) for k in range(BOARDS)]
        else:
            boards += [BoardProcess(program.hardware) for _ in range(BOARDS)]
            devices += [board.device for board in boards]
        for board in boards:
            stack.callback(board.close)
        session = stack.enter_context(InferenceSession(program, devices))
        stopped = threading.Event()
        events: list[float] = []
        disturber = threading.Thread(
            target=_disturb, args=(boards, failure, stopped, events, random.Random(seed))
        )
        disturber.start()
        start = time.perf_counter()
        try:
            counts = [0, 0, 0]
            for run, share in zip((_batches, _stream, _singles), _shares(images), strict=True):
                for number, result in run(session, name, x, share):
                    counts[0] += 1
                    if not np.array_equal(result, expected[number % _DISTINCT]):
                        counts[1] += 1
        finally:
            stopped.set()
            disturber.join()
        seconds = time.perf_counter() - start
        statuses = session.boards()
        retried = session.retried
    return {
        "failure": str(failure),
        "boards": BOARDS,
        "images": images,
        "failures": len(events) or sum(status.failures for status in statuses),
        "noticed": sum(status.failures for status in statuses),
        "retried": retried,
        "lost": images - counts[0],
        "doubled": max(0, counts[0] - images),
        "wrong": counts[1],
        "seconds": seconds,
        "images_per_board": [status.images for status in statuses],
    }


def _shares(images: int) -> tuple[int, int, int]:
    third = images // 3
    return third, third, images - 2 * third


Run = Callable[[InferenceSession, str, np.ndarray, int], Iterator[tuple[int, np.ndarray]]]


def _batches(
    session: InferenceSession, name: str, x: np.ndarray, images: int
) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, images, _BATCH):
        numbers = np.arange(first, min(first + _BATCH, images))
        results = session.run_batch(None, {name: x[numbers % _DISTINCT]})[0]
        yield from zip(numbers.tolist(), results, strict=True)


def _stream(
    session: InferenceSession, name: str, x: np.ndarray, images: int
) -> Iterator[tuple[int, np.ndarray]]:
    results = session.stream({name: x[k % _DISTINCT]} for k in range(images))
    for number, result in enumerate(results):
        yield number, result[0][0]


def _singles(
    session: InferenceSession, name: str, x: np.ndarray, images: int
) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, images, _BATCH):
        numbers = range(first, min(first + _BATCH, images))
        asked = [session.submit({name: x[k % _DISTINCT]}) for k in numbers]
        for number, future in zip(numbers, asked, strict=True):
            yield number, future.result()[0][0]


def _disturb(
    boards: list[BoardProcess],
    failure: Failure,
    stopped: threading.Event,
    events: list[float],
    chance: random.Random,
) -> None:
    """One board after the other fails, and comes back."""
    while boards and not stopped.wait(chance.uniform(*_PAUSE_SECONDS)):
        board = chance.choice(boards)
        events.append(time.monotonic())
        if failure is Failure.KILLED:
            board.kill()
            stopped.wait(chance.uniform(*_DOWN_SECONDS))
            board.start()
        else:
            board.hang()
            stopped.wait(chance.uniform(*_DOWN_SECONDS))
            board.go_on()

"""Boards of a pool that fail on command: dead, hung, slow, or with errors at random."""

import random
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

import numpy as np
from slipstick.errors import DeviceError
from slipstick.runtime.arrivals import Source

Values = dict[str, np.ndarray]


@dataclass
class Fate:
    """What is to become of a board.

    Parameters
    ----------
    seconds : float
        Per image.
    error_rate : float
        Of a DeviceError, per image.
    dead : bool
        Every image and every reopening is a DeviceError.
    hung : Event
        While it is clear, nothing comes back.
    wrong : callable
        Whether an image makes every board fail.
    """

    seconds: float = 0.0
    error_rate: float = 0.0
    dead: bool = False
    hung: threading.Event = field(default_factory=threading.Event)
    wrong: Callable[[Values], bool] = lambda values: False
    seed: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        self.hung.set()
        self.random = random.Random(self.seed)


class FailingRunner:
    """An execution: its output ``y`` is 3 x + 1, or an error.

    Parameters
    ----------
    fate : Fate
    """

    def __init__(self, fate: Fate) -> None:
        self.fate = fate
        self.check()

    def check(self) -> None:
        """DeviceError of a board that is dead."""
        if self.fate.dead:
            raise DeviceError("no answer")

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """Runs images."""
        fate, x = self.fate, inputs["x"]
        for number in range(len(x)):
            fate.hung.wait()
            if fate.seconds:
                time.sleep(fate.seconds)
            self.check()
            if fate.random.random() < fate.error_rate:
                raise DeviceError("an error at random")
            if fate.wrong({"x": x[number]}):
                raise DeviceError("no board likes this image")
            fate.runs += 1
        return {"y": 3 * x + 1}

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """Runs images, up to three of them on their way."""
        flying: list[Values] = []
        while flying or source.wait():
            if len(flying) < 3 and source.wait(0.0):
                flying.append(source.take())
                continue
            yield {**flying[0], **self.infer_batch(flying.pop(0))}
        source.check()

    def reset_state(self) -> None:
        """It has none."""

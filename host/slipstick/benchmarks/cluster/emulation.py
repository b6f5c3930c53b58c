"""Emulated boards to measure with: their images, what they give, and how fast they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...devices.wire_models import find_wire_model
from ...program import Program
from ...runtime.feeds import random_batch
from ...runtime.stages.board_time import BoardTime
from ...session import InferenceSession


class EmulatedBoards:
    """Equal emulated boards.

    Parameters
    ----------
    program : Program
    boards : int
    wire : str
        As ``bench --wire`` has it.
    slower : float
        All boards take so many times as long, so that this computer is not what is measured.
    distinct : int
        Images that differ: emulated boards compute each one once, then they remember it.

    Members
    -------
    device : str
        The name of each board.
    rate : float
        Images per second of one board.
    """

    def __init__(
        self, program: Program, boards: int, wire: str, slower: float, distinct: int
    ) -> None:
        self.device = f"emulated:@{wire}/{slower:g}"
        board = BoardTime(program.name, program.hardware, find_wire_model(wire))
        self.rate = 1 / (board.seconds(program) * slower)
        self._program, self._boards, self._wire, self._slower = program, boards, wire, slower
        self._distinct, self._images = distinct, random_batch(program, distinct)
        with InferenceSession(program, "model") as golden:
            self._expected = golden.run_batch(None, self._images)

    def count(self, seconds: float) -> int:
        """Images that all boards compute in so long, and at least all that differ."""
        return max(self._distinct, round(self._boards * self.rate * seconds))

    def feeds(self, count: int) -> dict[str, np.ndarray]:
        """So many images."""
        order = np.arange(count) % self._distinct
        return {name: value[order] for name, value in self._images.items()}

    def figures(
        self, count: int, seconds: float, retried: int, found: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        """Returns the figures of a measurement, ready for JSON.

        Parameters
        ----------
        count, retried : int
            Images that were computed, and computed again.
        seconds : float
        found : sequence of array
            The outputs for ``feeds(count)``.

        Returns
        -------
        dict
            ``efficiency``: the rate of all boards over the sum of their rates.
        """
        order = np.arange(count) % self._distinct
        rate = count / seconds
        pairs = zip(found, self._expected, strict=True)
        return {
            "network": self._program.name,
            "boards": self._boards,
            "wire": self._wire,
            "slower": self._slower,
            "images": count,
            "images_per_second": rate,
            "board_images_per_second": self.rate,
            "efficiency": rate / (self._boards * self.rate),
            "retried": retried,
            "equal": all(np.array_equal(a, b[order]) for a, b in pairs),
        }

"""Joins the parts of a tensor that several boards have made."""

import threading
from collections.abc import Callable

import numpy as np

Key = tuple[int, str]
"""The image's number, and a tensor's name."""


class ExchangeStopped(Exception):
    """Another board failed, or nobody wants the results any more."""


class Exchange:
    """Joins tensors: threads, one per board, leave their parts and wait for the whole.

    A board whose answer was lost may come again with the same part.

    Parameters
    ----------
    boards : int
    """

    def __init__(self, boards: int) -> None:
        self._boards = boards
        self._changed = threading.Condition()
        self._parts: dict[Key, dict[int, np.ndarray]] = {}
        self._wholes: dict[Key, np.ndarray] = {}
        self._stopped = False

    def of(self, board: int, image: int) -> Callable[[str, int, np.ndarray], np.ndarray]:
        """Joins tensors of an image for a board: see ``join``. Forgets images long done."""
        with self._changed:
            # boards are at most one image apart
            for kept in (self._parts, self._wholes):
                for key in [key for key in kept if key[0] < image - 1]:
                    del kept[key]
        return lambda name, axis, part: self.join((image, name), board, axis, part)

    def join(self, key: Key, board: int, axis: int, part: np.ndarray) -> np.ndarray:
        """Leaves a board's part, and returns the whole when all parts are there.

        Raises
        ------
        ExchangeStopped
            If ``stop`` was called before all parts were there.
        """
        with self._changed:
            if key not in self._wholes:
                parts = self._parts.setdefault(key, {})
                parts[board] = part
                if len(parts) == self._boards:
                    ordered = [parts[number] for number in range(self._boards)]
                    self._wholes[key] = np.concatenate(ordered, axis)
                    del self._parts[key]
                    self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or key in self._wholes)
            if key not in self._wholes:
                raise ExchangeStopped
            return self._wholes[key]

    def stop(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

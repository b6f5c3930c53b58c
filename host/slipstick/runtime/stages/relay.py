"""Selects what a stage takes, and keeps what passes by it on the host."""

from collections import deque
from collections.abc import Collection

import numpy as np

from ..arrivals import Source

Values = dict[str, np.ndarray]


class Relay:
    """A source of a stage's inputs; what later stages need of an image is kept until its results.

    Parameters
    ----------
    source : Source of dict of array
        All tensors of each image that anyone needs.
    inputs : collection of str
        Those that the stage takes.

    Members
    -------
    error : BaseException or None
        The error with which the source ended: not the stage's own.
    """

    def __init__(self, source: Source[Values], inputs: Collection[str]) -> None:
        self._source, self._inputs = source, inputs
        self._passing = deque[Values]()
        self.error: BaseException | None = None

    @property
    def ahead(self) -> int:
        """Images that may be on their way to the device, besides one."""
        return self._source.ahead

    def wait(self, seconds: float | None = None) -> bool:
        """Waits so many seconds for an image (None: to the end); tells whether one is there."""
        try:
            return self._source.wait(seconds)
        except BaseException as error:
            self.error = error
            raise

    def take(self) -> Values:
        """The stage's inputs of the next image."""
        values = self._source.take()
        self._passing.append(values)
        return {name: values[name] for name in self._inputs}

    def check(self) -> None:
        """Raises the error with which the source ended, if it did."""
        try:
            self._source.check()
        except BaseException as error:
            self.error = error
            raise

    def passed(self) -> Values:
        """All tensors of the image whose results are there."""
        return self._passing.popleft()

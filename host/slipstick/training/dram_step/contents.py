"""Keeps what the host has written to DRAM, and writes only what changes."""

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...runtime.dram_port import DramPort

_NEAR_WORDS = 16
"""Words that are written again, rather than in a request of their own for what lies behind."""


class Contents:
    """Words of DRAM that only the host writes.

    Parameters
    ----------
    port : DramPort
    """

    def __init__(self, port: DramPort) -> None:
        self._port = port
        self._first, self._words = 0, np.zeros(0, np.uint64)

    def submit(self, first: int, data: bytes) -> None:
        """Submits what differs from what was written last.

        Parameters
        ----------
        first : int
            A word. If it is another one than the last time, all is written.
        data : bytes
            Whole words.
        """
        words = np.frombuffer(data, np.uint64)
        known = self._words[: len(words)] if first == self._first else self._words[:0]
        changed = np.ones(len(words), bool)
        changed[: len(known)] = words[: len(known)] != known
        places = np.flatnonzero(changed)
        for span in np.split(places, np.flatnonzero(np.diff(places) > _NEAR_WORDS) + 1):
            if len(span):
                begin, end = int(span[0]), int(span[-1]) + 1
                part = data[begin * WORD_BYTES : end * WORD_BYTES]
                self._port.submit_write(first + begin, part)
        # words behind the data's end keep what they have, in case that they are needed again
        kept = self._words[len(words) :] if first == self._first else self._words[:0]
        self._first, self._words = first, np.concatenate([words, kept])

    def forget(self) -> None:
        """All is written the next time."""
        self._words = self._words[:0]

"""Sorts what became of a damaged file: allowed outcomes, and findings."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import SlipstickError

REFUSED = "refused"
READ = "read"
EQUAL = "equal to the reference"
UNKNOWN = "read, and the reference refuses it"


class WrongResultError(Exception):
    """A file was accepted, and its result is not the reference's."""


@dataclass(frozen=True, kw_only=True)
class Parser:
    """A kind of file under test.

    Parameters
    ----------
    name : str
    seeds : callable
        Makes valid files.
    mutate : callable
        Damages one of them; told a generator, the file, and all of them.
    check : callable
        Reads a file, as a user's command does, and says what became of it: one of the outcomes.
        It raises SlipstickError for a file that is refused.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutate: Callable[[random.Random, bytes, Sequence[bytes]], bytes]
    check: Callable[[bytes, random.Random], str]

    def case(self, files: Sequence[bytes], seed: int, index: int) -> bytes:
        """The damaged file of a number: the same for the same seed."""
        pick = self._pick(seed, index)
        return self.mutate(pick, files[pick.randrange(len(files))], files)

    def outcome(self, data: bytes, seed: int, index: int) -> str:
        """Returns a file's outcome; any other exception than SlipstickError is a finding."""
        try:
            return self.check(data, self._pick(seed, index))
        except SlipstickError as error:
            text = str(error)
            if not text.strip() or "\n" in text:
                raise WrongResultError(f"an error must be one line, not {text!r:.200}") from None
            return REFUSED

    def _pick(self, seed: int, index: int) -> random.Random:
        return random.Random(f"{seed}/{self.name}/{index}")

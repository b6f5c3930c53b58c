"""Writes that wait until a running program has come far enough."""

import functools
import itertools
from dataclasses import dataclass

from slipstick_rtl.link.protocol import CONTINUES, WAITING, Command

from .burst import BurstLayout, Piece
from .regions import pieces


@dataclass(frozen=True, kw_only=True, eq=False)
class Hold:
    """Bytes that are written once no program runs, or the one that runs has come far enough.

    Parameters
    ----------
    place : int
        Of the first one.
    completed : tuple of int
        Instructions of each stream that have been completed by then.
    seconds : float
        From the beginning of the run until then, probably.
    """

    place: int
    completed: tuple[int, ...]
    seconds: float = 0.0


@functools.lru_cache(maxsize=256)
def put_layout(
    number: int, size: int, longest: int, holds: tuple[Hold, ...], waiting: bool
) -> BurstLayout:
    """The frames of a PUT: stretches of data for one each, and the hold before one.

    A batch's images are alike, so layouts are kept.

    Parameters
    ----------
    number : int
        Of the region.
    size, longest : int
        Bytes of data, and the most of them in a frame.
    holds : tuple of Hold
    waiting : bool
        Once no program runs.
    """
    at = {hold.place: hold for hold in holds}
    head, flag = bytes((number,)), WAITING if waiting else 0
    frames = list[Piece]()
    for begin, end in itertools.pairwise(sorted({0, size, *at})):
        if (hold := at.get(begin)) is not None:
            done = packed_counts(hold.completed)
            frames.append(Piece(kind=Command.HOLD | WAITING, head=done, seconds=hold.seconds))
        for first, behind in pieces(end - begin, longest):
            put = Command.PUT | flag
            frames.append(Piece(kind=put, head=head, first=begin + first, end=begin + behind))
            head, flag = bytes((number | CONTINUES,)), 0
    return BurstLayout(pieces=tuple(frames))


@functools.lru_cache(maxsize=256)
def packed_counts(numbers: tuple[int, ...]) -> bytes:
    """Numbers of 16 bits, one per instruction stream, for a frame."""
    return b"".join(number.to_bytes(2, "little") for number in numbers)

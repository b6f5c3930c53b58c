"""Silent requests that are kept as one as long as nothing fails: an image's frames, on fast wires.

What a request costs the host is mostly Python's work to keep account of it. An image is seven or
more frames that nobody waits for. As a burst they cost little more than one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from slipstick_rtl.link.protocol import (
    FLAGS,
    SEQUENCE_NUMBERS,
    SILENT,
    WAITING,
    Command,
)

from .errors import LinkError
from .request import FRAME_BYTES, Request, encode_frame

MOST_IN_BURST = 32
"""Requests: few beside those that may be on their way."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A frame of a burst: what of the burst's data it carries.

    Parameters
    ----------
    kind : int
        Its command, ordered and sealed with the session's number, and the flag of WAITING.
    head : bytes
        Its payload begins with these.
    first, end : int
        Of the burst's data, which follow.
    seconds : float
        Of a HOLD, as ``run_seconds`` of its request.
    """

    kind: int
    head: bytes
    first: int = 0
    end: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BurstLayout:
    """The frames of bursts that are alike, such as a batch's images.

    Parameters
    ----------
    pieces : tuple of Piece
    """

    pieces: tuple[Piece, ...]
    size: int = field(init=False)
    waits: bool = field(init=False)

    def __post_init__(self) -> None:
        lengths = [len(each.head) + each.end - each.first for each in self.pieces]
        object.__setattr__(self, "size", sum(lengths) + len(lengths) * FRAME_BYTES)
        object.__setattr__(self, "waits", any(each.kind & WAITING for each in self.pieces))


class Burst:
    """Silent requests behind each other.

    To the queue it is one :class:`~slipstick.devices.link.request.Request` with several numbers. If
    it is to be answered, its last frame is. After a failure ``spread`` gives what takes its place.

    Parameters
    ----------
    layout : BurstLayout
    data : bytes
    """

    __slots__ = ("_data", "_pieces", "asks", "count", "is_done", "sequence", "size", "waits")

    silent: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    answer_bytes: ClassVar[int] = 0

    def __init__(self, layout: BurstLayout, data: bytes) -> None:
        self._pieces, self._data = layout.pieces, data
        self.count, self.size, self.waits = len(layout.pieces), layout.size, layout.waits
        self.sequence = -1
        self.asks = self.is_done = False

    @property
    def command(self) -> Command:
        """Tells the command of its first request."""
        return Command(self._pieces[0].kind & ~FLAGS)

    @property
    def last_sequence(self) -> int:
        """The number of its last frame."""
        return (self.sequence + self.count - 1) % SEQUENCE_NUMBERS

    def has(self, sequence: int) -> bool:
        """Tells whether a number is one of its own."""
        return (sequence - self.sequence) % SEQUENCE_NUMBERS < self.count

    def frame(self, seal: int) -> bytes:
        """The bytes of its frames on the wire, with their numbers and flags of now."""
        data, sequence = self._data, self.sequence
        asking = self._pieces[-1] if self.asks else None
        frames = list[bytes]()
        for piece in self._pieces:
            payload = piece.head + data[piece.first : piece.end]
            kind = piece.kind if piece is asking else piece.kind | SILENT
            frames.append(encode_frame(kind, sequence, payload, seal))
            sequence = (sequence + 1) % SEQUENCE_NUMBERS
        return b"".join(frames)

    def spread(self) -> Iterator[Request]:
        """Its requests, one by one, with their numbers if it has been sent."""
        for number, piece in enumerate(self._pieces):
            command, waiting = Command(piece.kind & ~FLAGS), bool(piece.kind & WAITING)
            payload = piece.head + self._data[piece.first : piece.end]
            request = Request(
                command, payload, silent=True, waiting=waiting, run_seconds=piece.seconds
            )
            if self.sequence >= 0:
                request.sequence = (self.sequence + number) % SEQUENCE_NUMBERS
                request.asks = self.asks and piece is self._pieces[-1]
            yield request

    def complete(self, answer: bytes = b"") -> None:
        """All of it has been executed."""
        self.is_done = True

    def fail(self, error: LinkError) -> None:
        """Nobody waits for it, so nobody is told."""
        self.is_done = True

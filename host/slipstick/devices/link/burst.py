"""Requests that are kept as one as long as nothing fails: an image's frames, on fast wires.

What a request costs the host is mostly Python's work to keep account of it. An image is seven or
more frames that nobody waits for, and the question for another image's results. As a burst they
cost little more than one of them.
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
"""Silent requests: few beside those that may be on their way."""


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
    """Silent requests behind each other, and others at both ends.

    To the queue it is one :class:`~slipstick.devices.link.request.Request` with several numbers. If
    it is to be answered, its last frame is. After a failure ``spread`` gives what takes its place.

    Parameters
    ----------
    layout : BurstLayout
        Of the silent ones.
    data : bytes
    first : Request, optional
        A silent, ordered one before them.
    last : Request, optional
        An ordered one behind them. It is completed, or fails, with the burst.
    """

    __slots__ = (
        "_data",
        "_first",
        "_last",
        "_pieces",
        "answer_bytes",
        "asks",
        "count",
        "is_done",
        "sequence",
        "silent",
        "size",
        "waits",
    )

    is_ordered: ClassVar[bool] = True

    def __init__(
        self,
        layout: BurstLayout,
        data: bytes,
        *,
        first: Request | None = None,
        last: Request | None = None,
    ) -> None:
        self._pieces, self._data, self._first, self._last = layout.pieces, data, first, last
        self.count, self.size, self.waits = len(layout.pieces), layout.size, layout.waits
        self.silent, self.answer_bytes = True, 0
        if first is not None:
            self.count += 1
            self.size += first.size
            self.waits = self.waits or first.waits
        if last is not None:
            self.count += 1
            self.size += last.size
            self.waits = self.waits or last.waits
            self.silent, self.answer_bytes = last.silent, last.answer_bytes
        self.sequence = -1
        self.asks = self.is_done = False

    @property
    def command(self) -> Command:
        """Tells the command of its first request."""
        if self._first is not None:
            return self._first.command
        return Command(self._pieces[0].kind & ~FLAGS)

    @property
    def last_sequence(self) -> int:
        """The number of its last frame."""
        return (self.sequence + self.count - 1) % SEQUENCE_NUMBERS

    def has(self, sequence: int) -> bool:
        """Tells whether a number is one of its own."""
        return (sequence - self.sequence) % SEQUENCE_NUMBERS < self.count

    def _number(self) -> None:
        """Numbers the requests at both ends."""
        if self._first is not None:
            self._first.sequence = self.sequence
        if self._last is not None:
            self._last.sequence, self._last.asks = self.last_sequence, self.asks

    def frame(self, seal: int) -> bytes:
        """The bytes of its frames on the wire, with their numbers and flags of now."""
        data, sequence, first, last = self._data, self.sequence, self._first, self._last
        asking = self._pieces[-1] if self.asks and last is None else None
        frames = list[bytes]()
        self._number()
        if first is not None:
            frames.append(first.frame(seal))
            sequence = (sequence + 1) % SEQUENCE_NUMBERS
        for piece in self._pieces:
            payload = piece.head + data[piece.first : piece.end]
            kind = piece.kind if piece is asking else piece.kind | SILENT
            frames.append(encode_frame(kind, sequence, payload, seal))
            sequence = (sequence + 1) % SEQUENCE_NUMBERS
        if last is not None:
            frames.append(last.frame(seal))
        return b"".join(frames)

    def spread(self) -> Iterator[Request]:
        """Its requests, one by one, with their numbers if it has been sent."""
        is_sent = self.sequence >= 0
        asking = self._pieces[-1] if self.asks and self._last is None else None
        if is_sent:
            self._number()
        if self._first is not None:
            yield self._first
        for number, piece in enumerate(self._pieces, self._first is not None):
            command, waiting = Command(piece.kind & ~FLAGS), bool(piece.kind & WAITING)
            payload = piece.head + self._data[piece.first : piece.end]
            request = Request(
                command, payload, silent=True, waiting=waiting, run_seconds=piece.seconds
            )
            if is_sent:
                request.sequence = (self.sequence + number) % SEQUENCE_NUMBERS
                request.asks = piece is asking
            yield request
        if self._last is not None:
            yield self._last

    def complete(self, answer: bytes = b"") -> None:
        """All of it has been executed; ``answer`` is to the last request."""
        self.is_done = True
        if self._last is not None:
            self._last.complete(answer)

    def fail(self, error: LinkError) -> None:
        """Nobody waits for its requests but the last."""
        self.is_done = True
        if self._last is not None:
            self._last.fail(error)

    def lose(self) -> None:
        """It has been executed; the answer to the last request is lost."""
        self.is_done = True
        if self._last is not None:
            self._last.lose()

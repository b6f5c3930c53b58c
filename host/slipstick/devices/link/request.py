"""A request, from its submission to its answer."""

import struct
import zlib
from dataclasses import dataclass, field
from typing import ClassVar

from slipstick_rtl.link.protocol import (
    AFTER,
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    SILENT,
    UNORDERED,
    UNSEALED,
    WAITING,
    Command,
)

from .errors import LinkError

_HEADER = struct.Struct("<BBH")
"""Header after the start byte: kind, number, and length of the payload."""
_START = bytes((REQUEST_START,))
FRAME_BYTES = HEADER_BYTES + CRC_BYTES
"""Bytes of a request or an answer, beside its payload."""


class LostAnswerError(LinkError):
    """The request has been executed, but its answer is lost, and the device has gone on."""


def encode_frame(kind: int, sequence: int, payload: bytes, seal: int) -> bytes:
    """A request's bytes on the wire; ``kind`` is its command with its flags."""
    body = _HEADER.pack(kind, sequence, len(payload)) + payload
    checksum = zlib.crc32(body) ^ seal
    return _START + body + checksum.to_bytes(CRC_BYTES, "little")


@dataclass(slots=True, eq=False)
class Request:
    """A request, and what has become of it.

    Parameters
    ----------
    command : Command
    payload : bytes
    answer_bytes : int
        How long the payload of its answer must be.
    silent : bool
        Nobody needs its answer.
    waiting : bool
        The device executes it when no program runs.
    run_seconds : float
        How long the run probably takes that it starts; of a HOLD, how long the run has gone on when
        it is executed.

    Members
    -------
    count : int
        Of requests; a :class:`~slipstick.devices.link.burst.Burst` has more.
    size : int
        Bytes of its frame.
    is_ordered : bool
        It has a place in the order of the session.
    is_after : bool
        It is a RUN_GET that answers when its own run has ended.
    waits : bool
        Its answer may come only when a run has ended.
    is_done : bool
        ``answer`` or ``error`` is there.
    """

    command: Command
    payload: bytes = b""
    answer_bytes: int = 0
    silent: bool = False
    waiting: bool = False
    run_seconds: float = 0.0
    size: int = field(default=0, init=False)
    is_ordered: bool = field(default=True, init=False)
    is_after: bool = field(default=False, init=False)
    count: ClassVar[int] = 1
    waits: bool = field(default=False, init=False)
    sequence: int = field(default=-1, init=False)
    asks: bool = field(default=False, init=False)
    is_done: bool = field(default=False, init=False)
    answer: bytes = field(default=b"", init=False)
    error: LinkError | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # looked at for every frame several times: kept, not computed anew
        self.size = FRAME_BYTES + len(self.payload)
        self.is_ordered = self.command not in UNORDERED
        self.is_after = self.command is Command.RUN_GET and bool(self.payload[0] & AFTER)
        self.waits = self.waiting or self.is_after

    @property
    def last_sequence(self) -> int:
        """Its number, in the words of a burst."""
        return self.sequence

    def frame(self, seal: int) -> bytes:
        """Its bytes on the wire, with its number and flags of now."""
        kind = self.command | (0 if self.asks else SILENT) | (WAITING if self.waiting else 0)
        sealed_with = 0 if self.command in UNSEALED else seal
        return encode_frame(kind, self.sequence, self.payload, sealed_with)

    def complete(self, answer: bytes = b"") -> None:
        """It has been executed, and this is its answer."""
        self.answer, self.is_done = answer, True

    def fail(self, error: LinkError) -> None:
        """It will have no answer."""
        self.error, self.is_done = error, True

    def lose(self) -> None:
        """It has been executed; its answer is lost."""
        self.fail(
            LostAnswerError(
                "NO_ANSWER",
                f"the answer to {self.command.name} was lost, and the device has gone on",
            )
        )

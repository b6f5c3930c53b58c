"""Finds the responses in the bytes that a device sends, whatever is between them."""

import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from slipstick_rtl.link.protocol import CRC_BYTES, HEADER_BYTES, RESPONSE_START, Status

from .transport import Transport

_LATE_READS = 2
"""Most reads after the deadline: of a frame's beginning, and of its rest."""

_STATUSES = frozenset(int(status) for status in Status)
_DRAIN_BYTES = 4096
_DRAIN_READS = 64


@dataclass(frozen=True)
class Response:
    """A response whose CRC is right, with what seals it: 0 or the reader's session."""

    status: Status
    sequence: int
    payload: bytes
    seal: int


class ResponseReader:
    """Reads responses from a transport; garbage, however long, only costs time.

    Parameters
    ----------
    transport : Transport
    payload_bytes : int
        Longest payload of a response; what claims to be longer is none.

    Members
    -------
    session : int
        Frames that are sealed with another number are garbage.
    bytes : int
        Received since the beginning.
    """

    def __init__(self, transport: Transport, payload_bytes: int) -> None:
        self._transport = transport
        self._take_arrived: Callable[[], bytes] | None = getattr(transport, "take_arrived", None)
        self._payload_bytes = payload_bytes
        self._received = bytearray()
        self.session = 0
        self.bytes = 0

    def next(self, deadline: float) -> Response | None:
        """The next response, or None at the ``deadline`` (of ``time.monotonic``) or in silence.

        An answer that is there already counts, however late this process comes to look.
        """
        late = 0
        while True:
            response, missing = self._parse()
            if response is not None:
                return response
            left = deadline - time.monotonic()
            late += left <= 0
            data = b""
            if late <= _LATE_READS:
                data = self._transport.receive(missing, max(left, 0.0))
            if not data:
                return self._rescue()
            if self._take_arrived is not None:
                # answers behind this one need no calls of their own
                data += self._take_arrived()
            self.bytes += len(data)
            self._received += data

    def arrives(self, seconds: float) -> bool:
        """Waits for bytes as long as that; whether there are some that nobody has looked at."""
        data = self._transport.receive(1, seconds)
        self.bytes += len(data)
        self._received += data
        return bool(data)

    def drain(self, silence_seconds: float) -> None:
        """Throws away what comes until nothing has come for the time, or too much has."""
        self._received.clear()
        for _ in range(_DRAIN_READS):
            if not self._transport.receive(_DRAIN_BYTES, silence_seconds):
                break

    def _rescue(self) -> Response | None:
        """In silence, what looks like the beginning of a frame is none; one may be behind it."""
        while self._received:
            del self._received[0]
            response, _ = self._parse()
            if response is not None:
                return response
        return None

    def _parse(self) -> tuple[Response | None, int]:
        """A response, taken out of what was received; else the bytes missing at the least."""
        while True:
            start = self._received.find(RESPONSE_START)
            del self._received[: start if start >= 0 else len(self._received)]
            have = len(self._received)
            if have < HEADER_BYTES:
                return None, HEADER_BYTES + CRC_BYTES - have
            status, sequence, length = struct.unpack_from("<BBH", self._received, 1)
            size = HEADER_BYTES + length + CRC_BYTES
            plausible = length <= self._payload_bytes and status in _STATUSES
            if plausible and have < size:
                return None, size - have
            if plausible:
                body = bytes(self._received[1 : size - CRC_BYTES])
                checksum = bytes(self._received[size - CRC_BYTES : size])
                seal = zlib.crc32(body) ^ int.from_bytes(checksum, "little")
                if seal in (0, self.session):
                    del self._received[:size]
                    return Response(Status(status), sequence, body[HEADER_BYTES - 1 :], seal), 0
            del self._received[0]

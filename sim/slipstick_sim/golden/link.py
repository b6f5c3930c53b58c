"""The device's end of the framed link: what the gateware answers, byte for byte."""

import struct
import zlib
from collections.abc import Sequence
from typing import Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    RESIDUE,
    RESPONSE_START,
    RUN_CLEARS_COUNTERS,
    UNSEALED,
    Command,
    DeviceStatus,
    Space,
    Status,
    encode,
)
from slipstick_rtl.link.spaces import WRITE_ARGUMENTS, unit_bytes, unit_count, units_per_frame

_READ = struct.Struct("<BHBH")
_RUN = struct.Struct(f"<B{len(STREAMS)}H")
_OPEN = struct.Struct("<I")


class Backend(Protocol):
    """What an endpoint acts upon; it is only asked what the rules allow."""

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Stores whole units from unit ``address`` on, all within the memory."""
        ...

    def read(self, address: int, count: int) -> bytes:
        """``count`` bytes of activation memory, all within it."""
        ...

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        """Starts all instruction streams."""
        ...

    def status(self) -> DeviceStatus:
        """The state of the run."""
        ...

    def reset(self) -> None:
        """Stops a run."""
        ...


class _Refused(Exception):
    """A request that breaks a rule, with the status that says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class Endpoint:
    """Answers requests over a backend by the rules of ``RequestChecker`` and ``RequestReader``.

    Parameters
    ----------
    configuration : Configuration
    backend : Backend

    Raises
    ------
    ValueError
        If ``payload_bytes`` cannot hold one unit of each space.
    """

    def __init__(self, configuration: Configuration, backend: Backend) -> None:
        for space in Space:
            units_per_frame(configuration, space)
        self._configuration = configuration
        self._backend = backend
        self._received = bytearray()
        self._last_run: int | None = None
        self._session = 0

    def feed(self, data: bytes) -> bytes:
        """Takes bytes as they come over the wire, however they are cut; returns the answers."""
        self._received += data
        answers = bytearray()
        while (frame := self._next_frame()) is not None:
            answers += self._answer(frame)
        return bytes(answers)

    def time_out(self) -> None:
        """What the gateware does when a frame stops arriving: forgets what came of it."""
        self._received.clear()

    def _next_frame(self) -> bytes | None:
        """A whole frame without its start byte, or None until more has come."""
        start = self._received.find(REQUEST_START)
        del self._received[: start if start >= 0 else len(self._received)]
        if len(self._received) < HEADER_BYTES:
            return None
        (length,) = struct.unpack_from("<H", self._received, 3)
        size = HEADER_BYTES + length + CRC_BYTES
        if len(self._received) < size:
            return None
        frame = bytes(self._received[1:size])
        del self._received[:size]
        return frame

    def _answer(self, frame: bytes) -> bytes:
        body = frame[:-CRC_BYTES]
        command, sequence, length = struct.unpack_from("<BBH", body)
        status, answer = Status.OK, b""
        if zlib.crc32(frame) ^ RESIDUE != (0 if command in UNSEALED else self._session):
            status = Status.BAD_CRC
        elif length > self._configuration.payload_bytes:
            status = Status.BAD_LENGTH
        else:
            try:
                answer = self._execute(command, sequence, body[HEADER_BYTES - 1 :])
            except _Refused as refusal:
                status = refusal.status
        unsealed = status is Status.BAD_CRC or command == Command.IDENTIFY
        seal = 0 if unsealed else self._session
        return encode(RESPONSE_START, status, sequence, answer, seal)

    def _execute(self, command: int, sequence: int, payload: bytes) -> bytes:
        if command == Command.WRITE:
            self._write(payload)
            return b""
        if command == Command.READ:
            return self._read(payload)
        if command == Command.RUN:
            self._run(sequence, payload)
            return b""
        if command == Command.OPEN:
            self._open(payload)
            return b""
        if command not in tuple(Command):
            raise _Refused(Status.BAD_COMMAND)
        if payload:
            raise _Refused(Status.BAD_LENGTH)
        if command == Command.IDENTIFY:
            return Identity.of(self._configuration).pack()
        if command == Command.STATUS:
            return self._backend.status().pack()
        self._backend.reset()
        self._last_run = None
        return b""

    def _open(self, payload: bytes) -> None:
        if len(payload) != _OPEN.size:
            raise _Refused(Status.BAD_LENGTH)
        self._backend.reset()
        self._last_run = None
        (self._session,) = _OPEN.unpack(payload)

    def _write(self, payload: bytes) -> None:
        if len(payload) < WRITE_ARGUMENTS:
            raise _Refused(Status.BAD_LENGTH)
        space, address = payload[0], int.from_bytes(payload[1:WRITE_ARGUMENTS], "little")
        data = payload[WRITE_ARGUMENTS:]
        if space not in tuple(Space):
            raise _Refused(Status.BAD_SPACE)
        units, rest = divmod(len(data), unit_bytes(self._configuration, Space(space)))
        if rest:
            raise _Refused(Status.BAD_LENGTH)
        if address + units > unit_count(self._configuration, Space(space)):
            raise _Refused(Status.BAD_ADDRESS)
        self._backend.write(Space(space), address, data)
        self._last_run = None

    def _read(self, payload: bytes) -> bytes:
        if len(payload) != _READ.size:
            raise _Refused(Status.BAD_LENGTH)
        space, low, high, count = _READ.unpack(payload)
        address = low | high << 16
        if space != Space.ACTIVATIONS:
            raise _Refused(Status.BAD_SPACE)
        if count > self._configuration.payload_bytes:
            raise _Refused(Status.BAD_LENGTH)
        if address + count > self._configuration.activation_bytes:
            raise _Refused(Status.BAD_ADDRESS)
        return self._backend.read(address, count)

    def _run(self, sequence: int, payload: bytes) -> None:
        if len(payload) != _RUN.size:
            raise _Refused(Status.BAD_LENGTH)
        flags, *pcs = _RUN.unpack(payload)
        if sequence == self._last_run:
            return
        if self._backend.status().running:
            raise _Refused(Status.BUSY)
        if max(pcs) >= self._configuration.instruction_words:
            raise _Refused(Status.BAD_ADDRESS)
        self._backend.run(pcs, bool(flags & RUN_CLEARS_COUNTERS))
        self._last_run = sequence

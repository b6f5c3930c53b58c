"""The device's end of the framed link: what the gateware answers, byte for byte."""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from operator import ge
from typing import Protocol

from slipstick_rtl.config import WRITE_ARGUMENTS, Configuration
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    AFTER,
    CONTINUES,
    CRC_BYTES,
    FLAGS,
    HEADER_BYTES,
    REGION_BYTES,
    REGIONS,
    REQUEST_START,
    RESIDUE,
    RESPONSE_START,
    RUN_CLEARS_COUNTERS,
    SEQUENCE_NUMBERS,
    SILENT,
    UNORDERED,
    UNSEALED,
    WAITING,
    Command,
    DeviceStatus,
    Region,
    Space,
    Status,
    encode,
    pack_status,
)
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, unit_count

_READ = struct.Struct("<BHBH")
_RUN = struct.Struct(f"<B{len(STREAMS)}H")
_OPEN = struct.Struct("<I")
_HOLD = struct.Struct(f"<{len(STREAMS)}H")


class Backend(Protocol):
    """The device behind an endpoint; it is only asked what the rules allow."""

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Stores whole units from unit ``address`` on, all within the memory."""
        ...

    def read(self, address: int, count: int) -> bytes:
        """``count`` bytes of activation memory, all within it."""
        ...

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        """Starts all instruction streams."""
        ...

    def wait(self) -> bool:
        """Waits for the end of the run, as long as the link does; whether it has ended."""
        ...

    def status(self) -> DeviceStatus:
        """The state of the run."""
        ...

    def reset(self) -> None:
        """Stops a run."""
        ...


class _Refused(Exception):
    """A request that breaks a rule, with the status that says which.

    ``executed``: it has been executed all the same, and its number counts.
    """

    def __init__(self, status: Status, *, executed: bool = False) -> None:
        super().__init__(status)
        self.status, self.executed = status, executed


class _Region:
    """A region as DEFINE described it, and the addresses of its bytes."""

    def __init__(self, packed: bytes) -> None:
        fields = struct.unpack(Region.FORMAT, packed)
        self.count, low, high, *sizes, gap, plane_gap = fields
        self._address = low | high << 16
        self._run_bytes, self._runs, self._planes = (size + 1 for size in sizes)
        self._gap, self._plane_gap = gap, plane_gap

    def pieces(self, position: int, count: int) -> Iterator[tuple[int | None, int]]:
        """The bytes from a position on, as stretches: address and bytes of each; the address is
        None of those that the region has not."""
        while count:
            run, byte = divmod(position, self._run_bytes)
            plane, run = divmod(run, self._runs)
            size = min(count, self._run_bytes - byte)
            if plane >= self._planes:
                yield None, count
                return
            row = self._run_bytes + self._gap
            plane_bytes = self._runs * row - self._gap + self._plane_gap
            yield self._address + plane * plane_bytes + run * row + byte, size
            position, count = position + size, count - size


class Endpoint:
    """Answers requests over a backend by the rules of :mod:`slipstick_rtl.link.protocol`.

    Parameters
    ----------
    configuration : Configuration
    backend : Backend
    """

    def __init__(self, configuration: Configuration, backend: Backend) -> None:
        self._configuration = configuration
        self._backend = backend
        self._received = bytearray()
        self._session = 0
        self._last = SEQUENCE_NUMBERS - 1
        self._regions = [_Region(bytes(REGION_BYTES)) for _ in range(REGIONS)]
        self._position: tuple[_Region, int] | None = None
        """Region and position of the next byte of a PUT that continues; None if none may."""
        self._executors: dict[Command, Callable[[int, bytes, bool], bytes]] = {
            Command.IDENTIFY: self._identify,
            Command.WRITE: self._write,
            Command.READ: self._read,
            Command.RUN: self._run,
            Command.STATUS: self._status,
            Command.RESET: self._reset,
            Command.OPEN: self._open,
            Command.DEFINE: self._define,
            Command.PUT: self._put,
            Command.GET: self._get,
            Command.RUN_GET: self._run_get,
            Command.HOLD: self._hold,
        }
        if configuration.traits.shares_memory:
            del self._executors[Command.HOLD]

    @property
    def next_sequence(self) -> int:
        """The number of the next request that has a place in the order."""
        return (self._last + 1) % SEQUENCE_NUMBERS

    def feed(self, data: bytes) -> bytes:
        """Takes bytes as they come over the wire, however they are cut; returns the answers."""
        self._received += data
        answers = bytearray()
        while (frame := self._next_frame()) is not None:
            answers += self._answer(frame)
        return bytes(answers)

    def time_out(self) -> None:
        """Forgets what came of a frame, as the gateware does when a frame stops arriving."""
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
        byte, sequence, length = struct.unpack_from("<BBH", body)
        command = byte & ~FLAGS
        status, answer = Status.OK, b""
        if zlib.crc32(frame) ^ RESIDUE != (0 if command in UNSEALED else self._session):
            status = Status.BAD_CRC
        elif length > self._configuration.payload_bytes:
            status = Status.BAD_LENGTH
        else:
            try:
                answer = self._execute(byte, sequence, body[HEADER_BYTES - 1 :])
            except _Refused as refusal:
                status = refusal.status
        if status is Status.OK and byte & SILENT:
            return b""
        unsealed = status is Status.BAD_CRC or command == Command.IDENTIFY
        seal = 0 if unsealed else self._session
        return encode(RESPONSE_START, status, sequence, answer, seal)

    def _execute(self, byte: int, sequence: int, payload: bytes) -> bytes:
        if byte & ~FLAGS not in self._executors:
            raise _Refused(Status.BAD_COMMAND)
        command = Command(byte & ~FLAGS)
        ordered = command not in UNORDERED
        repeated = ordered and sequence == self._last
        if ordered and not repeated and sequence != self.next_sequence:
            raise _Refused(Status.OUT_OF_ORDER)
        if byte & WAITING and not self._ended(payload if command is Command.HOLD else b""):
            raise _Refused(Status.BUSY)
        breaks = command is Command.OPEN or (ordered and command is not Command.HOLD)
        if breaks and command is not Command.PUT:
            self._position = None
        try:
            answer = self._executors[command](sequence, payload, repeated)
        except _Refused as refusal:
            if refusal.executed:
                self._executed(command, sequence)
            raise
        self._executed(command, sequence)
        return answer

    def _executed(self, command: Command, sequence: int) -> None:
        if command not in UNORDERED or command is Command.OPEN:
            self._last = sequence

    def _ended(self, counts: bytes = b"") -> bool:
        """Waits for the end of a run, or for a HOLD's counts; whether it has come in time."""
        status = self._backend.status()
        if len(counts) == _HOLD.size and all(map(ge, status.done, _HOLD.unpack(counts))):
            return True
        return not status.running or self._backend.wait()

    def _identify(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(not payload, Status.BAD_LENGTH)
        return Identity.of(self._configuration).pack()

    def _status(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(not payload, Status.BAD_LENGTH)
        return pack_status(self._backend.status(), self.next_sequence)

    def _reset(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(not payload, Status.BAD_LENGTH)
        self._backend.reset()
        return b""

    def _open(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == _OPEN.size, Status.BAD_LENGTH)
        self._backend.reset()
        (self._session,) = _OPEN.unpack(payload)
        return b""

    def _write(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) >= WRITE_ARGUMENTS, Status.BAD_LENGTH)
        space, address = payload[0], int.from_bytes(payload[1:WRITE_ARGUMENTS], "little")
        data = payload[WRITE_ARGUMENTS:]
        _require(space in spaces_of(self._configuration), Status.BAD_SPACE)
        units, rest = divmod(len(data), unit_bytes(self._configuration, Space(space)))
        _require(not rest, Status.BAD_LENGTH)
        limit = unit_count(self._configuration, Space(space))
        _require(address + units <= limit, Status.BAD_ADDRESS)
        if not repeated:
            self._backend.write(Space(space), address, data)
        return b""

    def _read(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == _READ.size, Status.BAD_LENGTH)
        space, low, high, count = _READ.unpack(payload)
        address = low | high << 16
        _require(space == Space.ACTIVATIONS, Status.BAD_SPACE)
        _require(count <= self._configuration.payload_bytes, Status.BAD_LENGTH)
        _require(address + count <= self._configuration.activation_bytes, Status.BAD_ADDRESS)
        return self._backend.read(address, count)

    def _run(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == _RUN.size, Status.BAD_LENGTH)
        flags, *pcs = _RUN.unpack(payload)
        if not repeated:
            self._start(pcs, bool(flags & RUN_CLEARS_COUNTERS))
        return b""

    def _start(self, pcs: list[int], clear: bool) -> None:
        _require(not self._backend.status().running, Status.BUSY)
        _require(max(pcs) < self._configuration.instruction_words, Status.BAD_ADDRESS)
        self._backend.run(pcs, clear)

    def _define(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == 1 + REGION_BYTES, Status.BAD_LENGTH)
        _require(payload[0] < REGIONS, Status.BAD_SPACE)
        region = _Region(payload[1:])
        _require(region.count <= self._configuration.payload_bytes, Status.BAD_LENGTH)
        self._regions[payload[0]] = region
        return b""

    def _region(self, payload: bytes, flag: int) -> tuple[_Region, bool]:
        """The region that an argument names, and whether it has the flag."""
        _require(payload[0] & ~flag < REGIONS, Status.BAD_SPACE)
        return self._regions[payload[0] & ~flag], bool(payload[0] & flag)

    def _put(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) >= 1, Status.BAD_LENGTH)
        region, continues = self._region(payload, CONTINUES)
        if repeated:
            return b""
        _require(not continues or self._position is not None, Status.OUT_OF_ORDER)
        position = 0
        if continues and self._position is not None:
            region, position = self._position
        self._position = None
        data = payload[1:]
        for address, size in region.pieces(position, len(data)):
            _require(address is not None, Status.BAD_ADDRESS)
            assert address is not None
            within = min(size, max(self._configuration.activation_bytes - address, 0))
            self._backend.write(Space.ACTIVATIONS, address, data[:within])
            _require(within == size, Status.BAD_ADDRESS)
            data = data[size:]
        self._position = region, position + len(payload) - 1
        return b""

    def _get(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == 1, Status.BAD_LENGTH)
        region, _ = self._region(payload, 0)
        _require(not self._backend.status().bad_instruction, Status.BAD_INSTRUCTION)
        return self._bytes_of(region)

    def _run_get(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == _RUN.size, Status.BAD_LENGTH)
        region, after = self._region(payload, AFTER)
        _, *pcs = _RUN.unpack(payload)
        if after:
            if not repeated:
                self._start(pcs, True)
            if not self._ended():
                raise _Refused(Status.BUSY, executed=True)
            if self._backend.status().bad_instruction:
                raise _Refused(Status.BAD_INSTRUCTION, executed=True)
        else:
            running, words = self._backend.status().running, self._configuration.instruction_words
            _require(repeated or not running, Status.BUSY)
            _require(repeated or max(pcs) < words, Status.BAD_ADDRESS)
            _require(not self._backend.status().bad_instruction, Status.BAD_INSTRUCTION)
        answer = self._bytes_of(region)
        if not after and not repeated:
            self._backend.run(pcs, True)
        return answer

    def _hold(self, sequence: int, payload: bytes, repeated: bool) -> bytes:
        _require(len(payload) == _HOLD.size, Status.BAD_LENGTH)
        return b""

    def _bytes_of(self, region: _Region) -> bytes:
        """Reads what a GET answers; a host asks for no bytes beyond the region or the memory."""
        answer, limit = bytearray(), self._configuration.activation_bytes
        for address, size in region.pieces(0, region.count):
            start = limit if address is None else address
            within = min(size, max(limit - start, 0))
            answer += (self._backend.read(start, within) if within else b"").ljust(size, b"\0")
        return bytes(answer)


def _require(condition: bool, status: Status) -> None:
    """The request is refused with this status unless the condition holds."""
    if not condition:
        raise _Refused(status)

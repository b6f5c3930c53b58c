"""The link's frames: constants, encoder and decoder. Needs neither Amaranth nor NumPy.

Request, host to device (integers little endian)::

    0xA5 | command u8 | sequence u8 | length u16 | payload ... | crc u32

Response, device to host::

    0x5A | status u8  | sequence u8 | length u16 | payload ... | crc u32

The CRC-32 (Ethernet's, zlib's) covers everything between the start byte and itself. Every request
that arrives whole is answered once, with its sequence number. A request whose CRC is wrong is
answered with BAD_CRC and changes nothing; a request that stops arriving is forgotten after
``timeout`` idle cycles; bytes between frames are skipped.

A host begins a session with OPEN and a number that it draws at random. From then on every CRC is
sealed: a request's is XORed with the seal that gave the number (``session_of``), a response's with
the number itself. So a frame that lies within a payload, or that another host sends, or that was
meant for the device before it lost its memories, has a wrong CRC. Without a seal are IDENTIFY and
OPEN, the answer to IDENTIFY, and BAD_CRC; and everything while the number is 0, as it is at first.
"""

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from ..isa import STREAMS

REQUEST_START = 0xA5
RESPONSE_START = 0x5A
HEADER_BYTES = 5
CRC_BYTES = 4


class Command(IntEnum):
    """What a request asks for, with its payload and the payload of the answer."""

    IDENTIFY = 1
    """() -> fingerprint 8 bytes, protocol version u8, ISA version u8, payload_bytes u16."""

    WRITE = 2
    """(space u8, address u24, data ...) -> (); the address counts units of the space (see Space)
    and the data must be whole units. Allowed while a program runs, which goes on meanwhile: what it
    reads of the units written is undefined until the answer has come."""

    READ = 3
    """(space u8, address u24, count u16 in bytes) -> data; only ACTIVATIONS can be read."""

    RUN = 4
    """(flags u8, pc u16 per stream) -> (); starts all instruction streams at these words
    of the instruction memory; flag bit 0 clears the completion counters first. BUSY while a program
    runs; but a repeated RUN with the sequence number of the last one is answered OK and not run
    again."""

    STATUS = 5
    """() -> state u8 (bit 0 running, bit 1 bad instruction met), done u16 per stream, cycles u32,
    busy cycles u32 per stream: counted from RUN until all streams ended. The streams are those of
    ``isa.STREAMS``, in that order."""

    RESET = 6
    """() -> (); stops a run; memories keep their contents."""

    OPEN = 7
    """(session u32) -> (); stops a run, forgets the last RUN, and seals all frames from this one's
    answer on with the number; 0 ends the session."""


UNSEALED = frozenset({Command.IDENTIFY, Command.OPEN})
"""Requests that hold in every session."""


class Space(IntEnum):
    """A memory of the device, with the unit that its addresses count."""

    INSTRUCTIONS = 0
    """units of 4 bytes"""
    WEIGHTS = 1
    """units of W C bytes (one word); with parity bits 9 W C / 8 bytes"""
    PARAMETERS = 2
    """units of 9 bytes: bias i32, multiplier u32, shift u8; only a compact engine has any"""
    ACTIVATIONS = 3
    """units of 1 byte"""


class Status(IntEnum):
    """How the device answers."""

    OK = 0
    BAD_CRC = 1
    BAD_COMMAND = 2
    BAD_LENGTH = 3
    BAD_SPACE = 4
    BAD_ADDRESS = 5
    BUSY = 6


RUN_CLEARS_COUNTERS = 1


@dataclass(frozen=True)
class DeviceStatus:
    """The answer to STATUS; cycles count from RUN until all streams ended.

    ``done`` and ``stream_cycles`` have one value per stream: completed instructions, and cycles in
    which the stream's unit worked.
    """

    running: bool
    bad_instruction: bool
    done: tuple[int, ...]
    cycles: int
    stream_cycles: tuple[int, ...]

    FORMAT = f"<B{len(STREAMS)}HI{len(STREAMS)}I"

    @classmethod
    def idle(cls, done: tuple[int, ...] = (0,) * len(STREAMS)) -> "DeviceStatus":
        """The state of a device without clock cycles, when no program runs."""
        return cls(False, False, done, 0, (0,) * len(STREAMS))

    def progress(self) -> str:
        """Completed instructions as messages tell them: ``3 matrix, 2 post instructions``."""
        counts = zip(self.done, STREAMS, strict=True)
        return ", ".join(f"{count} {name}" for count, name in counts) + " instructions"

    @classmethod
    def unpack(cls, payload: bytes) -> "DeviceStatus":
        """Decodes the payload of a STATUS response; ValueError if its length is wrong."""
        if len(payload) != struct.calcsize(cls.FORMAT):
            size = struct.calcsize(cls.FORMAT)
            raise ValueError(f"a status must be {size} bytes, not {len(payload)}")
        state, *rest = struct.unpack(cls.FORMAT, payload)
        done, cycles = tuple(rest[: len(STREAMS)]), rest[len(STREAMS)]
        own = tuple(rest[len(STREAMS) + 1 :])
        return cls(bool(state & 1), bool(state & 2), done, cycles, own)

    def pack(self) -> bytes:
        """The payload that ``unpack`` decodes."""
        state = self.running | self.bad_instruction << 1
        return struct.pack(self.FORMAT, state, *self.done, self.cycles, *self.stream_cycles)


RESIDUE = zlib.crc32(bytes(CRC_BYTES))
"""The CRC-32 of anything that ends with its own CRC-32."""


def session_of(seal: int) -> int:
    """The session whose requests carry this seal, both 32 bits; only 0 gives 0.

    A receiver that runs a sealed request through its CRC ends with the number instead of 0, XORed
    with ``RESIDUE``: it need not know the seal.
    """
    return zlib.crc32(seal.to_bytes(CRC_BYTES, "little")) ^ RESIDUE


def encode(start: int, kind: int, sequence: int, payload: bytes = b"", seal: int = 0) -> bytes:
    """One frame: a request (REQUEST_START, ``kind`` a Command) or a response (a Status)."""
    body = struct.pack("<BBH", kind, sequence, len(payload)) + payload
    return bytes([start]) + body + struct.pack("<I", zlib.crc32(body) ^ seal)

"""The link's frames: constants, encoder and decoder. Needs neither Amaranth nor NumPy.

Request, host to device (integers little endian)::

    0xA5 | command u8 | sequence u8 | length u16 | payload ... | crc u32

Response, device to host::

    0x5A | status u8  | sequence u8 | length u16 | payload ... | crc u32

The CRC-32 (Ethernet's, zlib's) covers everything between the start byte and itself. A request
whose CRC is wrong is answered with BAD_CRC and changes nothing; a request that stops arriving is
forgotten after ``timeout`` idle cycles; bytes between frames are skipped.

**Order.** The device executes the requests of a session in the order of their numbers, one after
the other. It remembers the number of the last one that it executed (OPEN: its own number). A
request with the next number (modulo 256) is executed. A request with the last number is that one,
sent again: it is answered, and has no second effect. Any other number is refused with OUT_OF_ORDER.
A request that is refused, whatever for, does not count as executed. So nothing behind a lost or
refused request is executed before that one has come again: a host may send many requests without
waiting, and no result is ever computed from a part of its inputs. ``UNORDERED`` commands have no
place in that order: they are executed when they come, whatever their number, which only names the
answer.

**Flags** of the command byte: a ``SILENT`` request is not answered if it is OK. A ``WAITING``
request is executed once no program runs (HOLD: sooner); requests behind it wait in the device. It
is refused with BUSY if the program has not ended within ``WAIT_TIMEOUTS`` x ``timeout`` cycles.

**Sessions.** A host begins a session with OPEN and a number that it draws at random. From then on
every CRC is sealed: a request's is XORed with the seal that gave the number (``session_of``), a
response's with the number itself. So a frame that lies within a payload, or that another host
sends, or that was meant for the device before it lost its memories, has a wrong CRC. Without a seal
are IDENTIFY and OPEN, the answer to IDENTIFY, and BAD_CRC; and everything while the number is 0, as
it is at first.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ..dma.transfer import DmaStatus
from ..isa import STREAMS

REQUEST_START = 0xA5
RESPONSE_START = 0x5A
HEADER_BYTES = 5
CRC_BYTES = 4
SEQUENCE_NUMBERS = 256


SILENT = 0x80
"""Flag of a request's command byte: no answer if the request is OK."""
WAITING = 0x40
"""Flag of a request's command byte: it is executed once no program runs."""
FLAGS = SILENT | WAITING

DEFAULT_TIMEOUT_CYCLES = 1 << 20
"""Idle cycles after which half a frame is forgotten, unless the gateware is built for others."""

WAIT_TIMEOUTS = 16
"""A WAITING request is refused after so many times the cycles after which half a frame is
forgotten: a program that never ends does not block the link."""


class Command(IntEnum):
    """The command of a request, with its payload and the payload of the answer."""

    IDENTIFY = 1
    """() -> fingerprint 8 bytes, protocol version u8, ISA version u8, payload_bytes u16."""

    WRITE = 2
    """(space u8, address u24, data ...) -> (); the address counts units of the space (see Space)
    and the data must be whole units. Allowed while a program runs, which goes on meanwhile: what it
    reads of the units written is undefined until the request has been executed."""

    READ = 3
    """(space u8, address u24, count u16 in bytes) -> data; only ACTIVATIONS can be read."""

    RUN = 4
    """(flags u8, pc u16 per stream) -> (); starts all instruction streams at these words
    of the instruction memory; flag bit 0 clears the completion counters first. BUSY while a program
    runs."""

    STATUS = 5
    """() -> state u8 (bit 0 running, bit 1 bad instruction met or DMA in error, bits 2 and 3 the
    DMA's ``DmaStatus``, 0 without DMA), done u16 per stream, cycles u32,
    busy cycles u32 per stream: counted from RUN until all streams ended; next sequence number u8.
    The streams are those of ``isa.STREAMS``, in that order."""

    RESET = 6
    """() -> (); stops a run; memories keep their contents."""

    OPEN = 7
    """(session u32) -> (); stops a run, makes its own number the last one, and seals all frames
    from this one's answer on with the session; 0 ends the session."""

    DEFINE = 8
    """(region u8, ``Region.pack``) -> (); describes a region of the activation memory. Regions keep
    their descriptions until they are described again; OPEN and RESET do not change them."""

    PUT = 9
    """(region u8, data ...) -> (); writes bytes into a region, run after run, from its beginning
    on. With bit 7 of ``region`` (``CONTINUES``) it goes on where the PUT just before it ended, in
    the same region, whatever number stands there; any other request of its place in the order
    between, executed or refused for what it asks, and any OPEN, makes that OUT_OF_ORDER.
    BAD_ADDRESS if a byte lies beyond the region or beyond the memory: those before it are
    written."""

    GET = 10
    """(region u8) -> data; reads ``Region.count`` bytes from the region's beginning on.
    BAD_INSTRUCTION if the last run met a bad instruction."""

    RUN_GET = 11
    """(region u8, pc u16 per stream) -> data; RUN, with the counters cleared, and GET in one. The
    bytes are those of the region while the run goes on, which must not touch it: the result of the
    run before. With bit 7 of ``region`` (``AFTER``) they are read when this run has ended; BUSY if
    it does not end in time (see WAITING), and then the request has been executed: GET has the
    bytes later."""

    HOLD = 12
    """(done u16 per stream) -> (); holds back what is behind it. With WAITING it is executed once
    no program runs, or the one that runs has completed so many instructions in each stream, as
    STATUS counts them: from then on its inputs may be written over. A PUT that continues goes on
    across it. BAD_COMMAND on a compact engine."""


UNSEALED = frozenset({Command.IDENTIFY, Command.OPEN})
"""Requests that hold in every session."""

UNORDERED = frozenset({Command.IDENTIFY, Command.STATUS, Command.RESET, Command.OPEN})
"""Requests that are executed whatever their number."""

REGIONS = 8
"""Regions that a device remembers."""
CONTINUES = 0x80
"""In the region of a PUT."""
AFTER = 0x80
"""In the region of a RUN_GET."""


@dataclass(frozen=True, kw_only=True)
class Region:
    """Bytes of the activation memory with gaps between them, as a tensor lies there.

    ``planes`` times ``runs`` times ``run_bytes`` bytes: after each run but the last of its plane,
    ``gap`` bytes are left out; after each plane, ``plane_gap`` bytes.

    Parameters
    ----------
    address : int
        Of the first byte.
    run_bytes, runs, planes : int
        1..65536.
    gap, plane_gap : int
        0..65535.
    count : int
        Bytes that a GET answers, at most ``payload_bytes`` of the configuration (DEFINE is refused
        with BAD_LENGTH otherwise), and no more than the region has.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    address: int
    run_bytes: int
    runs: int = 1
    planes: int = 1
    gap: int = 0
    plane_gap: int = 0
    count: int = 0

    FORMAT = "<HHBHHHHH"

    def __post_init__(self) -> None:
        bounds = {
            "address": (0, 1 << 24),
            "run_bytes": (1, 1 + (1 << 16)),
            "runs": (1, 1 + (1 << 16)),
            "planes": (1, 1 + (1 << 16)),
            "gap": (0, 1 << 16),
            "plane_gap": (0, 1 << 16),
            "count": (0, min(max(self.size, 0) + 1, 1 << 16)),
        }
        for name, (low, end) in bounds.items():
            value = getattr(self, name)
            if not low <= value < end:
                raise ValueError(f"{name} must be within {low}..{end - 1}, not {value}")

    @property
    def size(self) -> int:
        """Bytes of data."""
        return self.planes * self.runs * self.run_bytes

    def addresses(self) -> Iterator[tuple[int, int]]:
        """The runs in their order: address and bytes of each."""
        address = self.address
        for _ in range(self.planes):
            for _ in range(self.runs):
                yield address, self.run_bytes
                address += self.run_bytes + self.gap
            address += self.plane_gap - self.gap

    def pack(self) -> bytes:
        """Its form in a DEFINE, ``REGION_BYTES`` long; sizes stand there less one.

        The count is first, so that a device knows the only rule that can be broken before it stores
        the rest.
        """
        low, high = self.address & 0xFFFF, self.address >> 16
        sizes = self.run_bytes - 1, self.runs - 1, self.planes - 1
        return struct.pack(self.FORMAT, self.count, low, high, *sizes, self.gap, self.plane_gap)

    @classmethod
    def unpack(cls, packed: bytes) -> "Region":
        """Decodes what ``pack`` made, of any device: ``count`` may be larger than the region.

        Raises
        ------
        ValueError
            If the length is wrong, or ``count`` too large.
        """
        if len(packed) != REGION_BYTES:
            raise ValueError(f"a region must be {REGION_BYTES} bytes, not {len(packed)}")
        count, low, high, run, runs, planes, gap, plane_gap = struct.unpack(cls.FORMAT, packed)
        return cls(
            address=low | high << 16,
            run_bytes=run + 1,
            runs=runs + 1,
            planes=planes + 1,
            gap=gap,
            plane_gap=plane_gap,
            count=count,
        )


REGION_BYTES = struct.calcsize(Region.FORMAT)
REGION_PITCH = 16
"""A region's bytes in the device's table of regions, with one that is not used."""


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
    TRANSFERS = 6
    """units of 32 bytes: instructions of the DMA (:mod:`slipstick_rtl.dma.transfer`). It executes
    them in their order, whatever the address, and meanwhile a program counts as running. Only
    hardware with DRAM has it. Within the gateware it is PARAMETERS, modulo 4: none has both"""


class Status(IntEnum):
    """The device's answer to a request: done, or the reason for which it is refused."""

    OK = 0
    BAD_CRC = 1
    BAD_COMMAND = 2
    BAD_LENGTH = 3
    BAD_SPACE = 4
    BAD_ADDRESS = 5
    BUSY = 6
    OUT_OF_ORDER = 7
    BAD_INSTRUCTION = 8


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
    dma: DmaStatus = DmaStatus.OK

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
        """Decodes the state in a STATUS response; ValueError if its length is wrong."""
        if len(payload) != struct.calcsize(cls.FORMAT):
            size = struct.calcsize(cls.FORMAT)
            raise ValueError(f"a status must be {size} bytes, not {len(payload)}")
        state, *rest = struct.unpack(cls.FORMAT, payload)
        done, cycles = tuple(rest[: len(STREAMS)]), rest[len(STREAMS)]
        own = tuple(rest[len(STREAMS) + 1 :])
        return cls(bool(state & 1), bool(state & 2), done, cycles, own, DmaStatus(state >> 2 & 3))

    def pack(self) -> bytes:
        """The payload that ``unpack`` decodes."""
        state = self.running | self.bad_instruction << 1 | self.dma << 2
        return struct.pack(self.FORMAT, state, *self.done, self.cycles, *self.stream_cycles)


STATUS_BYTES = struct.calcsize(DeviceStatus.FORMAT) + 1
"""Bytes of the answer to STATUS: the state, and the next sequence number."""


def pack_status(status: DeviceStatus, next_sequence: int) -> bytes:
    """The payload of a STATUS response."""
    return status.pack() + bytes([next_sequence])


def unpack_status(payload: bytes) -> tuple[DeviceStatus, int]:
    """The state and the next sequence number; ValueError if the payload's length is wrong."""
    if len(payload) != STATUS_BYTES:
        raise ValueError(f"a status response must be {STATUS_BYTES} bytes, not {len(payload)}")
    return DeviceStatus.unpack(payload[:-1]), payload[-1]


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

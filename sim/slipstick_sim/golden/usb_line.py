"""USB at full speed, from packets to levels of the two wires and back (USB 2.0, chapters 7 and 8).

A level is one bit time, 1/12 us: ``J`` (D+ high, the line at rest), ``K`` (D- high) or ``SE0``
(both low). Packets are bytes, each sent from its least significant bit on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

SE0, J, K = 0b00, 0b01, 0b10
"""Levels: bit 0 is D+, bit 1 is D-."""

BIT_PICOSECONDS = 1_000_000 / 12
FRAME_BITS = 12_000
PACKETS_PER_FRAME = 19
"""Most bulk transactions of 64 bytes in a frame (USB 2.0, table 5-9)."""

_SYNC = [0, 0, 0, 0, 0, 0, 0, 1]
_END = [SE0, SE0, J]
_STUFF_AFTER = 6


class Pid(IntEnum):
    """Packet identifiers; on the wire the complement of the four bits follows them."""

    OUT = 0b0001
    IN = 0b1001
    SOF = 0b0101
    SETUP = 0b1101
    DATA0 = 0b0011
    DATA1 = 0b1011
    ACK = 0b0010
    NAK = 0b1010
    STALL = 0b1110
    PING = 0b0100
    """Token of high speed alone: it asks whether there is room for a packet."""

    @property
    def byte(self) -> int:
        """The first byte of the packet."""
        return self | (~self & 15) << 4


TOKENS = (Pid.OUT, Pid.IN, Pid.SETUP, Pid.SOF, Pid.PING)
DATA = (Pid.DATA0, Pid.DATA1)


class LineError(Exception):
    """The data on the wires are no packet; the message says what rule they break."""


@dataclass(frozen=True)
class Packet:
    """A packet's content: ``address`` and ``endpoint`` of a token (a SOF's frame number is
    ``address | endpoint << 7``), ``payload`` of data, nothing more of a handshake."""

    pid: Pid
    address: int = 0
    endpoint: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        """The packet's bytes, with its CRC."""
        head = bytes([self.pid.byte])
        if self.pid in TOKENS:
            fields = self.address | self.endpoint << 7
            return head + (fields | crc5(fields) << 11).to_bytes(2, "little")
        if self.pid in DATA:
            return head + self.payload + crc16(self.payload).to_bytes(2, "little")
        return head

    @classmethod
    def decode(cls, data: bytes) -> "Packet":
        """The packet of these bytes.

        Raises
        ------
        LineError
            If identifier, length or CRC is wrong.
        """
        if not data or (data[0] ^ data[0] >> 4) & 15 != 15:
            raise LineError(f"{data.hex()} has no identifier with its complement")
        if data[0] & 15 not in tuple(Pid):
            raise LineError(f"{data[0] & 15:#x} is no identifier")
        pid = Pid(data[0] & 15)
        if pid in TOKENS:
            fields = int.from_bytes(data[1:], "little")
            if len(data) != 3 or crc5(fields & 0x7FF) != fields >> 11:
                raise LineError(f"token {data.hex()} has a wrong length or CRC")
            return cls(pid, fields & 0x7F, fields >> 7 & 15)
        if pid in DATA:
            payload, crc = data[1:-2], int.from_bytes(data[-2:], "little")
            if len(data) < 3 or crc16(payload) != crc:
                raise LineError(f"data {data.hex()} has a wrong CRC")
            return cls(pid, payload=payload)
        if len(data) != 1:
            raise LineError(f"handshake {data.hex()} is longer than its identifier")
        return cls(pid)


def _bits(data: Iterable[int]) -> list[int]:
    return [byte >> place & 1 for byte in data for place in range(8)]


def _remainder(bits: Iterable[int], polynomial: int, width: int) -> int:
    """A CRC by division, bit after bit, as sent: complemented, its highest term first."""
    ones = (1 << width) - 1
    register = ones
    for bit in bits:
        feedback = register >> (width - 1) ^ bit
        register = register << 1 & ones
        if feedback:
            register ^= polynomial
    return int(f"{register ^ ones:0{width}b}"[::-1], 2)


def crc5(fields: int) -> int:
    """Computes the CRC of a token's 11 bits: x^5 + x^2 + 1."""
    return _remainder([fields >> place & 1 for place in range(11)], 0b00101, 5)


def crc16(payload: bytes) -> int:
    """Computes the CRC of a data packet's bytes: x^16 + x^15 + x^2 + 1."""
    return _remainder(_bits(payload), 0x8005, 16)


def stuff(bits: Iterable[int]) -> list[int]:
    """A zero after every six ones."""
    stuffed, ones = [], 0
    for bit in bits:
        stuffed.append(bit)
        ones = ones + 1 if bit else 0
        if ones == _STUFF_AFTER:
            stuffed.append(0)
            ones = 0
    return stuffed


def unstuff(bits: Iterable[int]) -> list[int]:
    """The opposite; LineError if a one is where the zero must be."""
    plain, ones = [], 0
    for bit in bits:
        if ones == _STUFF_AFTER:
            if bit:
                raise LineError("seven ones follow each other")
            ones = 0
            continue
        plain.append(bit)
        ones = ones + 1 if bit else 0
    return plain


def levels_of(data: bytes) -> list[int]:
    """The packet's levels: SYNC, the bytes, stuffed, and the end; the line was at rest before."""
    levels, level = [], J
    for bit in stuff(_SYNC + _bits(data)):
        level = level if bit else J + K - level
        levels.append(level)
    return levels + _END


def bytes_of(levels: Sequence[int]) -> bytes:
    """The bytes of a packet, from its first K to the end of its last J.

    Raises
    ------
    LineError
        If SYNC, bit stuffing, the number of bits or the end is wrong.
    """
    if list(levels[-len(_END) :]) != _END:
        raise LineError(f"a packet ends with {list(levels[-len(_END) :])}")
    body = [J, *levels[: -len(_END)]]
    if SE0 in body:
        raise LineError("both wires are low within a packet")
    pairs = zip(body, body[1:], strict=False)
    bits = unstuff([int(before == after) for before, after in pairs])
    if bits[: len(_SYNC)] != _SYNC:
        raise LineError(f"a packet begins with {bits[: len(_SYNC)]}")
    bits = bits[len(_SYNC) :]
    if len(bits) % 8:
        raise LineError(f"a packet has {len(bits)} bits")
    octets = zip(*[iter(bits)] * 8, strict=True)
    return bytes(sum(bit << place for place, bit in enumerate(octet)) for octet in octets)

"""Transfers of the SPI link: layout, constants, the rates that a clock allows. Needs no Amaranth.

SPI in mode 0, most significant bit first. A transfer is what passes under one chip select, both
ways at once; integers are little endian::

    controller:  host header 10 | anything 1 | data and anything, ``slots`` bytes | anything 7
    device:      device header 9 | filler 2   | data and filler,  ``slots`` bytes | trailer 7

Each direction is a stream of bytes, numbered from 0 at the device's reset, modulo 2^16.

* ``position`` is the number of the host's first byte, which must be the one that the device waits
  for, ``taken``; ``count`` of its bytes fill the first slots. The device takes them one by one
  until it has no room, and then no more in this transfer.
* ``received`` says that the host has all of the device's bytes before it. The device gives bytes
  from there on, in the first slots, until it has none, and then no more in this transfer. It keeps
  what it gave until ``received`` of a later transfer is past it.
* The trailer says how many the device has taken and given. If a transfer ends before its trailer,
  or the trailer is wrong, then the next device header says what the device has taken, and what it
  gave is given again.

A host header that breaks a rule (start byte, checksum, position, more received than given, more
bytes than slots) changes nothing: fillers follow until the chip is deselected. So does all that
comes after the trailer. The checksum, a CRC-8, covers what is between a start byte and itself, or
the trailer before it.
"""

import struct
from dataclasses import dataclass

HOST_START = 0x9C
DEVICE_START = 0x63
FILLER = 0x00

HOST_HEADER_BYTES = 10
DEVICE_HEADER_BYTES = 9
FIRST_SLOT = 11
TRAILER_BYTES = 7
OVERHEAD_BYTES = FIRST_SLOT + TRAILER_BYTES
"""Bytes of a transfer that are no slots."""

POSITIONS = 1 << 16
"""Positions count modulo this."""

CRC_POLYNOMIAL = 0x2F
CRC_INITIAL = 0xFF

MINIMUM_SCK_CYCLES = 4
"""Clock cycles of the device in a period of SCK, at least; each level lasts over 1 of them."""

DEFAULT_SCK_HZ = 10_000_000
"""Frequency of SCK that a host uses by default, if the device's clock allows it."""


def crc8(data: bytes) -> int:
    """The checksum of a header's or a trailer's bytes; over data and checksum it is 0."""
    crc = CRC_INITIAL
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ (CRC_POLYNOMIAL if crc & 0x80 else 0)) & 0xFF
    return crc


def highest_sck_hz(clock_hz: int) -> int:
    """The highest frequency of SCK that a device with this clock can follow."""
    return clock_hz // MINIMUM_SCK_CYCLES


@dataclass(frozen=True)
class HostHeader:
    """The controller's header of a transfer; all zeros instead only ask for the device's header.

    Parameters
    ----------
    position, received : int
        Numbers of bytes, modulo ``POSITIONS``.
    count, slots : int
        Bytes.
    """

    position: int
    received: int
    count: int
    slots: int

    FORMAT = "<4H"

    def pack(self) -> bytes:
        """The bytes, start byte and checksum included."""
        body = struct.pack(self.FORMAT, self.position, self.received, self.count, self.slots)
        return bytes([HOST_START]) + body + bytes([crc8(body)])

    @classmethod
    def unpack(cls, data: bytes) -> "HostHeader | None":
        """The header, or None if it is none."""
        if len(data) != HOST_HEADER_BYTES or data[0] != HOST_START or crc8(data[1:]) != 0:
            return None
        return cls(*struct.unpack(cls.FORMAT, data[1:-1]))


@dataclass(frozen=True)
class DeviceHeader:
    """The device's state, which it sends at the beginning of each transfer.

    Parameters
    ----------
    depth_bits : int
        It keeps up to 2^depth_bits bytes to give.
    taken : int
        Number of the host's next byte.
    released : int
        Number of the first byte that the device keeps: all before it have been ``received``.
    written : int
        Number of the first byte that it does not have yet.
    """

    depth_bits: int
    taken: int
    released: int
    written: int

    FORMAT = "<B3H"

    def pack(self) -> bytes:
        """The bytes, start byte and checksum included."""
        body = struct.pack(self.FORMAT, self.depth_bits, self.taken, self.released, self.written)
        return bytes([DEVICE_START]) + body + bytes([crc8(body)])

    @classmethod
    def unpack(cls, data: bytes) -> "DeviceHeader | None":
        """The header, or None if it is none."""
        if len(data) != DEVICE_HEADER_BYTES or data[0] != DEVICE_START or crc8(data[1:]) != 0:
            return None
        return cls(*struct.unpack(cls.FORMAT, data[1:-1]))


@dataclass(frozen=True)
class Trailer:
    """The positions after a transfer's data, which the device sends at its end.

    Parameters
    ----------
    sent : int
        Number of the first byte not given.
    taken, written : int
        As of ``DeviceHeader``.
    """

    sent: int
    taken: int
    written: int

    FORMAT = "<3H"

    def pack(self) -> bytes:
        """The bytes, checksum included."""
        body = struct.pack(self.FORMAT, self.sent, self.taken, self.written)
        return body + bytes([crc8(body)])

    @classmethod
    def unpack(cls, data: bytes) -> "Trailer | None":
        """The trailer, or None if it is none."""
        if len(data) != TRAILER_BYTES or crc8(data) != 0:
            return None
        return cls(*struct.unpack(cls.FORMAT, data[:-1]))

"""Frames of a host on Ethernet, without preamble and check sequence, made and taken apart."""

import struct
import zlib
from dataclasses import dataclass

from slipstick_rtl.phy.ethernet.datagrams import PORT, Datagram

_ARP, _IP, _UDP, _ICMP = 0x0806, 0x0800, 17, 1
_TYPE, _ADDRESS, _PORTS = slice(12, 14), slice(26, 30), slice(34, 38)
_ECHO = 34
_SHORTEST = 60


@dataclass(frozen=True)
class Station:
    """A MAC and an IP address, as numbers."""

    mac: int
    ip: int

    @property
    def mac_bytes(self) -> bytes:
        """In the order of the wire."""
        return self.mac.to_bytes(6, "big")

    @property
    def ip_bytes(self) -> bytes:
        """In the order of the wire."""
        return self.ip.to_bytes(4, "big")


HOST = Station(0x0211_2233_4455, 0xC0A8_0102)
BOARD = Station(0x0200_0000_0001, 0xC0A8_0132)
HOST_PORT = 40_000


def with_check(frame: bytes) -> bytes:
    """The frame filled up to 60 bytes, with its check sequence."""
    whole = frame.ljust(_SHORTEST, b"\0")
    return whole + struct.pack("<I", zlib.crc32(whole))


def is_right(frame: bytes) -> bool:
    """Tells whether a frame is long enough and its check sequence is right."""
    return (
        len(frame) >= _SHORTEST + 4 and zlib.crc32(frame[:-4]) == struct.unpack("<I", frame[-4:])[0]
    )


def arp(*, is_reply: bool) -> bytes:
    """The host asks for the board's address, or tells its own."""
    head = BOARD.mac_bytes + HOST.mac_bytes + struct.pack(">HHHBB", _ARP, 1, _IP, 6, 4)
    own = HOST.mac_bytes + HOST.ip_bytes
    other = (BOARD.mac_bytes if is_reply else bytes(6)) + BOARD.ip_bytes
    return head + struct.pack(">H", 2 if is_reply else 1) + own + other


def packet(protocol: int, payload: bytes) -> bytes:
    """An IP packet to the board."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0)
    head += HOST.ip_bytes + BOARD.ip_bytes
    total = sum(struct.unpack(">10H", head))
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    header = head[:10] + struct.pack(">H", total) + head[12:]
    return BOARD.mac_bytes + HOST.mac_bytes + struct.pack(">H", _IP) + header + payload


def udp(datagram: Datagram) -> bytes:
    """A datagram to the board."""
    payload = datagram.pack()
    return packet(_UDP, struct.pack(">HHHH", HOST_PORT, PORT, 8 + len(payload), 0) + payload)


def ping(payload: bytes) -> bytes:
    """An echo request; its sum is not looked at on the way."""
    return packet(_ICMP, struct.pack(">BBHHH", 8, 0, 0, 1, 2) + payload)


def asks_for_host(frame: bytes) -> bool:
    """Tells whether the board asks for the host's address."""
    return frame[_TYPE] == struct.pack(">H", _ARP) and frame[20:22] == b"\0\1"


def is_reply(frame: bytes) -> bool:
    """Tells whether the board gives its address."""
    return frame[_TYPE] == struct.pack(">H", _ARP) and frame[22:28] == BOARD.mac_bytes


def echo_of(frame: bytes, count: int) -> bytes:
    """The payload of an echo."""
    return frame[_ECHO + 8 : _ECHO + 8 + count]


def datagram_of(frame: bytes) -> Datagram:
    """The datagram to the host in a frame."""
    assert frame[:12] == HOST.mac_bytes + BOARD.mac_bytes and frame[_ADDRESS] == BOARD.ip_bytes
    assert frame[_PORTS] == struct.pack(">HH", PORT, HOST_PORT)
    (length,) = struct.unpack(">H", frame[38:40])
    return Datagram.unpack(frame[42 : 34 + length])

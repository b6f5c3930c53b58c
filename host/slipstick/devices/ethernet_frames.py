"""UDP datagrams in Ethernet frames, as between one host and one board, and ARP between the two."""

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

_ETHERNET = struct.Struct(">6s6sH")
_IP = struct.Struct(">BBHHHBBH4s4s")
_UDP = struct.Struct(">HHHH")
_ARP = struct.Struct(">HHBBH6s4s6s4s")
_IP_TYPE, _ARP_TYPE = 0x0800, 0x0806
_ARP_START = (1, _IP_TYPE, 6, 4)
_ASKS, _ANSWERS = 1, 2
_IP_HEADER, _UDP_PROTOCOL, _TIME_TO_LIVE = 0x45, 17, 64
_FRAGMENT = 0x3FFF


@dataclass(frozen=True)
class Station:
    """An address on an Ethernet: six bytes, and four of IP."""

    mac: bytes
    ip: bytes

    @classmethod
    def of(cls, mac: str, ip: str) -> "Station":
        """Reads it from text, as ``02:00:00:00:00:01`` and ``192.168.1.50``."""
        return cls(bytes.fromhex(mac.replace(":", "")), socket.inet_aton(ip))


def pack_frame(
    sender: Station, receiver: Station, sender_port: int, port: int, payload: bytes
) -> bytes:
    """A UDP datagram in a frame, without its check sequence."""
    udp = _UDP.pack(sender_port, port, _UDP.size + len(payload), 0) + payload
    pseudo = sender.ip + receiver.ip + struct.pack(">HH", _UDP_PROTOCOL, len(udp))
    # 0 would say that there is none
    checksum = _checksum(pseudo + udp) or 0xFFFF
    udp = udp[:6] + struct.pack(">H", checksum) + udp[8:]
    fields = (_IP_HEADER, 0, _IP.size + len(udp), 0, 0, _TIME_TO_LIVE, _UDP_PROTOCOL)
    checksum = _checksum(_IP.pack(*fields, 0, sender.ip, receiver.ip))
    ip = _IP.pack(*fields, checksum, sender.ip, receiver.ip)
    return _ETHERNET.pack(receiver.mac, sender.mac, _IP_TYPE) + ip + udp


def unpack_frame(frame: bytes, receiver: Station) -> tuple[int, int, bytes] | None:
    """The sender's port, the receiver's, and the payload of a frame; None if it has none for it."""
    start = _ETHERNET.size
    if len(frame) < start + _IP.size + _UDP.size:
        return None
    mac, _, kind = _ETHERNET.unpack_from(frame)
    version, _, length, _, fragment, _, protocol, _, _, ip = _IP.unpack_from(frame, start)
    if (mac, kind, version, protocol, ip) != (
        receiver.mac,
        _IP_TYPE,
        _IP_HEADER,
        _UDP_PROTOCOL,
        receiver.ip,
    ):
        return None
    sender_port, port, size, _ = _UDP.unpack_from(frame, start + _IP.size)
    at = start + _IP.size + _UDP.size
    end = at + size - _UDP.size
    if fragment & _FRAGMENT or not at <= end <= min(start + length, len(frame)):
        return None
    return sender_port, port, frame[at:end]


def answer_arp(frame: bytes, station: Station) -> bytes | None:
    """The station's answer to a frame that asks for its MAC address; None if it does not."""
    if len(frame) < _ETHERNET.size + _ARP.size:
        return None
    _, _, kind = _ETHERNET.unpack_from(frame)
    *start, operation, mac, ip, _, wanted = _ARP.unpack_from(frame, _ETHERNET.size)
    if (kind, tuple(start), operation, wanted) != (_ARP_TYPE, _ARP_START, _ASKS, station.ip):
        return None
    answer = _ARP.pack(*_ARP_START, _ANSWERS, station.mac, station.ip, mac, ip)
    return _ETHERNET.pack(mac, station.mac, _ARP_TYPE) + answer


def _checksum(data: bytes) -> int:
    """Computes the checksum of IP and UDP."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class FrameBoard:
    """A ``DatagramBoard`` of one that takes and gives frames: all hosts are one with many ports.

    Parameters
    ----------
    feed : callable
        Lets a frame arrive, or a little time pass if it is empty; returns the frames that came.
    is_idle : callable
        Whether nothing happens before the next frame.
    board, host : Station
    port : int
        The board's.
    """

    def __init__(
        self,
        feed: Callable[[bytes], list[bytes]],
        is_idle: Callable[[], bool],
        board: Station,
        host: Station,
        port: int,
    ) -> None:
        self._feed, self._is_idle = feed, is_idle
        self._board, self._host, self._port = board, host, port
        self._addresses: dict[int, bytes] = {}

    @property
    def rest_seconds(self) -> float:
        """As of ``DatagramBoard``."""
        return float("inf") if self._is_idle() else 0.0

    def receive(
        self, address: bytes, port: int, payload: bytes, now: float
    ) -> list[tuple[bytes, int, bytes]]:
        """As of ``DatagramBoard``."""
        self._addresses[port] = address
        frame = pack_frame(self._host, self._board, port, self._port, payload)
        return self._take(self._feed(frame))

    def poll(self, now: float) -> list[tuple[bytes, int, bytes]]:
        """As of ``DatagramBoard``."""
        return [] if self._is_idle() else self._take(self._feed(b""))

    def _take(self, frames: list[bytes]) -> list[tuple[bytes, int, bytes]]:
        packets = []
        waiting = list(frames)
        while waiting:
            frame = waiting.pop(0)
            answer = answer_arp(frame, self._host)
            if answer is not None:
                waiting += self._feed(answer)
                continue
            found = unpack_frame(frame, self._host)
            if found is not None and found[1] in self._addresses:
                packets.append((self._addresses[found[1]], found[1], found[2]))
        return packets

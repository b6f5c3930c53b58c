"""Frames between a host and a board on Ethernet, built and taken apart by scapy."""

from typing import Any

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from slipstick_rtl.phy.ethernet.addresses import parse_ip, parse_mac
from slipstick_rtl.phy.ethernet.datagrams import PORT, Datagram

BOARD_IP, BOARD_MAC = "192.168.1.50", "02:00:00:00:00:01"
HOST_IP, HOST_MAC, HOST_PORT = "192.168.1.2", "02:11:22:33:44:55", 40_000
EVERYBODY = "ff:ff:ff:ff:ff:ff"

IP_NUMBER, MAC_NUMBER = parse_ip(BOARD_IP), parse_mac(BOARD_MAC)


def ether(target: str = BOARD_MAC) -> Packet:
    """The header of a frame from the host."""
    return Ether(src=HOST_MAC, dst=target)


def ip(target: str = BOARD_IP, **fields: Any) -> Packet:
    """The header of an IP packet from the host."""
    return IP(src=HOST_IP, dst=target, **fields)


def arp_request(target: str = BOARD_IP) -> bytes:
    """The host asks for an address."""
    return bytes(ether(EVERYBODY) / ARP(hwsrc=HOST_MAC, psrc=HOST_IP, pdst=target))


def arp_reply() -> bytes:
    """The host tells its address."""
    answer = ARP(op=2, hwsrc=HOST_MAC, psrc=HOST_IP, hwdst=BOARD_MAC, pdst=BOARD_IP)
    return bytes(ether() / answer)


def ping(payload: bytes, target: str = BOARD_IP) -> bytes:
    """The host asks for an echo."""
    return bytes(ether() / ip(target) / ICMP(id=7, seq=3) / payload)


def udp(
    payload: bytes,
    *,
    mac: str = BOARD_MAC,
    target: str = BOARD_IP,
    port: int = PORT,
    length: int | None = None,
    **fields: Any,
) -> bytes:
    """A UDP packet from the host; ``fields`` are those of IP."""
    header = UDP(sport=HOST_PORT, dport=port, len=length)
    return bytes(ether(mac) / ip(target, **fields) / header / payload)


def is_question(frame: bytes) -> bool:
    """Whether the board asks for the host's address."""
    packet = Ether(frame)
    return ARP in packet and packet[ARP].op == 1 and packet[ARP].pdst == HOST_IP


def datagram_of(frame: bytes) -> Datagram:
    """The datagram in a frame to the host, whose headers are checked."""
    packet = Ether(frame)
    assert (packet.dst, packet.src) == (HOST_MAC, BOARD_MAC)
    header, udp_header = packet[IP], packet[UDP]
    assert (header.src, header.dst) == (BOARD_IP, HOST_IP)
    assert (udp_header.sport, udp_header.dport) == (PORT, HOST_PORT)
    assert header.len == udp_header.len + 20
    right = IP(bytes(header))
    del right.chksum
    assert IP(bytes(right)).chksum == header.chksum
    # what follows is padding
    return Datagram.unpack(bytes(packet[UDP].payload)[: udp_header.len - 8])

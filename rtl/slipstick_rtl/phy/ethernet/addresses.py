"""IP and MAC addresses of a board: text to numbers, and the MAC address that a core has by default.

Needs no Amaranth.
"""

import hashlib
import ipaddress
import re

OPTIONS = ("ip", "mac")
"""Options of every Ethernet wire, as text."""

LINK_LOCAL = 169 << 24 | 254 << 16
_LOCALLY_ADMINISTERED = 0x02


def parse_ip(text: str) -> int:
    """Returns an IPv4 address as a number, the first byte in the highest bits.

    Raises
    ------
    ValueError
        If it is none, or one that no single host can have.
    """
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise ValueError(
            f"an IP address must be four numbers, such as 192.168.1.50, not {text!r}"
        ) from None
    number = int(address)
    ends = number & 0xFF
    # the core takes the network for one of 256 addresses
    if address.is_multicast or address.is_loopback or number >> 24 == 0 or ends in (0, 0xFF):
        raise ValueError(f"an IP address must be that of one host, not {text}")
    return number


def parse_mac(text: str) -> int:
    """Returns a MAC address as a number, the first byte in the highest bits.

    Raises
    ------
    ValueError
        If it is none, or one of many stations.
    """
    if not re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", text):
        raise ValueError(
            f"a MAC address must be six bytes, such as 02:00:00:00:00:01, not {text!r}"
        )
    number = int(re.sub("[:-]", "", text), 16)
    if number >> 40 & 1 or number == 0:
        raise ValueError(f"a MAC address must be that of one station, not {text}")
    return number


def default_mac(fingerprint: str) -> int:
    """Returns a locally administered MAC address, from the fingerprint of a configuration.

    Boards of one configuration have the same: on one network each needs an address of its own.
    """
    digest = hashlib.sha256(f"slipstick {fingerprint}".encode()).digest()
    return int.from_bytes(bytes([_LOCALLY_ADMINISTERED]) + digest[:5], "big")


def link_local_ip(mac: int) -> int:
    """Returns the IPv4 link-local address (RFC 3927) that goes with a MAC address."""
    return LINK_LOCAL | (1 + (mac >> 8 & 0xFF) % 254) << 8 | 1 + (mac & 0xFF) % 254


def format_ip(number: int) -> str:
    """Returns an IPv4 address as text."""
    return str(ipaddress.IPv4Address(number))


def format_mac(number: int) -> str:
    """Returns a MAC address as text."""
    return number.to_bytes(6, "big").hex(":")

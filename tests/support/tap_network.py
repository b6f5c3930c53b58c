"""Run in a network namespace of its own: Linux's UDP and the host's devices find a compiled board.

Arguments: the board's library, and its configuration as JSON. Prints a line for each thing that
was seen.
"""

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

from ethernet_frames import BOARD_IP, HOST_IP
from slipstick.devices.udp import found_boards, open_udp
from slipstick_rtl.config import Configuration
from slipstick_sim.verilated.ethernet_endpoint import EthernetEndpoint
from slipstick_sim.verilated.tap import BoardOnTap, Tap

NOT_PERMITTED = 77
SECONDS = 10.0


def checksum(message: bytes) -> int:
    total = sum(struct.unpack(f">{len(message) // 2}H", message))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(payload: bytes) -> bytes:
    """What comes back of an echo's payload."""
    head = struct.pack(">BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, 1)
    head = head[:2] + struct.pack(">H", checksum(head + payload)) + head[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(SECONDS)
        raw.sendto(head + payload, (BOARD_IP, 0))
        packet = raw.recv(2048)
    assert packet[20] == 0 and checksum(packet[20:]) == 0
    return packet[28:]


def main(library: str, configuration: Configuration) -> None:
    try:
        tap = Tap("slipstick0", HOST_IP)
    except OSError as error:
        print(f"no TAP interface: {error}")
        sys.exit(NOT_PERMITTED)
    endpoint = EthernetEndpoint(Path(library))
    with BoardOnTap(tap, endpoint):
        payload = bytes(range(64))
        assert ping(payload) == payload
        print("pinged", BOARD_IP)
        end = time.monotonic() + SECONDS
        while not (boards := found_boards()) and time.monotonic() < end:
            pass
        print("found", [board.place for board in boards])
        device = open_udp(BOARD_IP, configuration)
        print("opened", device.configuration.fingerprint == configuration.fingerprint)
        device.close()
    endpoint.close()
    tap.close()


if __name__ == "__main__":
    main(sys.argv[1], Configuration.from_dict(json.loads(sys.argv[2])))

"""Datagrams in frames, against scapy; and a board that takes and gives frames."""

import struct

import pytest
from ethernet_frames import (
    BOARD_IP,
    BOARD_MAC,
    HOST_IP,
    HOST_MAC,
    HOST_PORT,
    arp_request,
    udp,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether
from slipstick.devices.ethernet_frames import (
    FrameBoard,
    Station,
    answer_arp,
    pack_frame,
    unpack_frame,
)
from slipstick_rtl.phy.ethernet.datagrams import PORT

BOARD, HOST = Station.of(BOARD_MAC, BOARD_IP), Station.of(HOST_MAC, HOST_IP)


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(255)), bytes(1400)])
def test_frames_are_those_of_scapy(payload: bytes) -> None:
    frame = pack_frame(HOST, BOARD, HOST_PORT, PORT, payload)
    packet = Ether(frame)
    assert (packet.src, packet.dst) == (HOST_MAC, BOARD_MAC)
    assert (packet[IP].src, packet[IP].dst) == (HOST_IP, BOARD_IP)
    assert (packet[UDP].sport, packet[UDP].dport) == (HOST_PORT, PORT)
    assert bytes(packet[UDP].payload) == payload
    for layer in (IP, UDP):
        again = Ether(frame)
        del again[layer].chksum
        assert Ether(bytes(again))[layer].chksum == packet[layer].chksum


def test_padding_is_left_out() -> None:
    assert unpack_frame(udp(b"slip").ljust(60, b"\0"), BOARD) == (HOST_PORT, PORT, b"slip")


@pytest.mark.parametrize(
    "frame",
    [
        udp(b"x", mac="02:00:00:00:00:09"),
        udp(b"x", target="192.168.1.9"),
        udp(b"x", length=500),
        udp(b"x", frag=1),
        udp(b"x", proto=6),
        arp_request().ljust(60, b"\0"),
        b"",
    ],
)
def test_what_is_for_others_or_no_datagram(frame: bytes) -> None:
    assert unpack_frame(frame, BOARD) is None


def test_the_host_is_asked_for_its_address() -> None:
    answer = answer_arp(arp_request(), BOARD)
    assert answer is not None
    packet = Ether(answer)
    assert (packet.dst, packet[ARP].op) == (HOST_MAC, 2)
    assert (packet[ARP].hwsrc, packet[ARP].psrc) == (BOARD_MAC, BOARD_IP)
    assert answer_arp(arp_request("192.168.1.9"), BOARD) is None
    assert answer_arp(answer, HOST) is None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=80), st.integers(0, 41), st.integers(0, 255))
def test_any_frame_may_come(tail: bytes, at: int, byte: int) -> None:
    frame = bytearray(udp(b"slipstick"))
    frame[at] = byte
    for damaged in (tail, bytes(frame), bytes(frame[:14]) + tail):
        found = unpack_frame(damaged, BOARD)
        assert found is None or found[2] in damaged
        answer_arp(damaged, BOARD)


class Mirror:
    """A board that asks for the host's address once, and then sends each payload back."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self.knows = False

    def feed(self, frame: bytes) -> list[bytes]:
        if frame and struct.unpack_from(">H", frame, 12) == (0x0806,):
            self.knows = True
        elif (found := unpack_frame(frame, BOARD)) is not None:
            self.waiting.append(pack_frame(BOARD, HOST, PORT, found[0], found[2]))
        if not self.knows:
            question = ARP(hwsrc=BOARD_MAC, psrc=BOARD_IP, pdst=HOST_IP)
            return [bytes(Ether(src=BOARD_MAC, dst="ff:ff:ff:ff:ff:ff") / question)]
        came, self.waiting = self.waiting, []
        return came


def test_a_board_of_frames_is_one_of_datagrams() -> None:
    mirror = Mirror()
    board = FrameBoard(mirror.feed, lambda: not mirror.waiting, BOARD, HOST, PORT)
    one, other = bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2))
    assert board.receive(one, 5, b"abc", 0.0) == [(one, 5, b"abc")]
    assert board.receive(other, 6, b"d", 0.0) == [(other, 6, b"d")]
    assert board.rest_seconds > 1 and board.poll(0.0) == []
    mirror.waiting.append(pack_frame(BOARD, HOST, PORT, 77, b"to nobody"))
    assert board.rest_seconds == 0 and board.poll(0.0) == []

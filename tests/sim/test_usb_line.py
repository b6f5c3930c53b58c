"""The model of USB's wires: CRCs that others have published, stuffing, and what is no packet."""

import random
from collections.abc import Callable

import pytest
from slipstick_sim.golden.usb_line import (
    SE0,
    J,
    K,
    LineError,
    Packet,
    Pid,
    bytes_of,
    crc5,
    crc16,
    levels_of,
    stuff,
    unstuff,
)


@pytest.mark.parametrize(
    ("address", "endpoint", "sent_first"),
    [(0x15, 0xE, "10111"), (0x3A, 0xA, "11100"), (0x70, 4, "01110")],
)
def test_crc_of_tokens(address: int, endpoint: int, sent_first: str) -> None:
    """Examples of "Cyclic Redundancy Checks in USB", a white paper of the USB forum."""
    assert f"{crc5(address | endpoint << 7):05b}"[::-1] == sent_first


@pytest.mark.parametrize(("payload", "sent_first"), [("00010203", 0xF75E), ("23456789", 0x7038)])
def test_crc_of_data(payload: str, sent_first: int) -> None:
    assert int(f"{crc16(bytes.fromhex(payload)):016b}"[::-1], 2) == sent_first


def test_levels_of_a_handshake() -> None:
    """SYNC, ACK's identifier and its complement from the least significant bit on, and the end."""
    names = "".join(
        {J: "J", K: "K", SE0: "0"}[level] for level in levels_of(Packet(Pid.ACK).encode())
    )
    assert names == "KJKJKJKK" + "JJKJJKKK" + "00J"


def test_packets_there_and_back() -> None:
    generator = random.Random(1)
    for size in (*range(10), 63, 64):
        payload = bytes(generator.choice([0xFF, generator.randrange(256)]) for _ in range(size))
        for packet in (
            Packet(Pid.DATA1, payload=payload),
            Packet(Pid.IN, size, size % 16),
            Packet(Pid.NAK),
        ):
            levels = levels_of(packet.encode())
            assert Packet.decode(bytes_of(levels)) == packet
            assert not any(
                levels[at : at + 8] == [level] * 8 for at in range(len(levels)) for level in (J, K)
            )


def test_stuffing() -> None:
    assert stuff([1] * 13) == [1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1]
    assert unstuff(stuff([1] * 13)) == [1] * 13
    with pytest.raises(LineError, match="seven ones"):
        unstuff([1] * 7)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no identifier"),
        (b"\x55", "no identifier"),
        (b"\x3c", "is no identifier"),
        (Packet(Pid.OUT, 5, 2).encode()[:2], "wrong length or CRC"),
        (b"\xe1\x00\x00", "wrong length or CRC"),
        (Packet(Pid.DATA0, payload=b"abc").encode()[:-1] + b"\0", "wrong CRC"),
        (b"\xd2\x00", "longer than its identifier"),
    ],
)
def test_bytes_that_are_no_packet(data: bytes, message: str) -> None:
    with pytest.raises(LineError, match=message):
        Packet.decode(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda levels: levels[:-1], "a packet ends with"),
        (lambda levels: [*levels[:9], SE0, *levels[10:]], "both wires are low"),
        (lambda levels: levels[2:], "a packet begins with"),
        (lambda levels: [*levels[:-3], J, *levels[-3:]], "bits"),
    ],
)
def test_levels_that_are_no_packet(change: Callable[[list[int]], list[int]], message: str) -> None:
    with pytest.raises(LineError, match=message):
        bytes_of(change(levels_of(Packet(Pid.ACK).encode())))

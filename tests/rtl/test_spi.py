"""SPI: what goes over the wires, the rates that a clock allows, and what is refused."""

import random

import pytest
from amaranth.lib.crc import Algorithm
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.core_behind_phy import core_behind
from slipstick_rtl.phy.spi import Spi
from slipstick_rtl.phy.spi_pins import SpiPins
from slipstick_rtl.phy.spi_protocol import (
    CRC_INITIAL,
    CRC_POLYNOMIAL,
    DEVICE_HEADER_BYTES,
    DEVICE_START,
    HOST_HEADER_BYTES,
    HOST_START,
    MINIMUM_SCK_CYCLES,
    TRAILER_BYTES,
    DeviceHeader,
    HostHeader,
    Trailer,
    crc8,
    highest_sck_hz,
)
from slipstick_rtl.primitives.replay_queue import ReplayQueue

HEADERS = (
    (HostHeader(0x1234, 0xFFFE, 7, 4078), HOST_START, HOST_HEADER_BYTES),
    (DeviceHeader(11, 0x1234, 0xFFFE, 7), DEVICE_START, DEVICE_HEADER_BYTES),
    (Trailer(0x1234, 0xFFFE, 7), None, TRAILER_BYTES),
)


@pytest.mark.parametrize(("header", "start", "size"), HEADERS)
def test_headers_come_back_and_only_whole(
    header: HostHeader | DeviceHeader | Trailer, start: int | None, size: int
) -> None:
    packed = header.pack()
    unpack = type(header).unpack
    assert len(packed) == size
    assert start is None or packed[0] == start
    assert unpack(packed) == header
    for place in range(8 * size):
        assert unpack((int.from_bytes(packed) ^ 1 << place).to_bytes(size)) is None
    for wrong in (b"", packed[:-1], packed + b"\0", bytes(size), b"\xff" * size):
        assert unpack(wrong) is None


def test_the_layout_is_little_endian() -> None:
    assert HostHeader(0x1234, 0x5678, 0x9ABC, 0xDEF0).pack()[1:-1].hex() == "34127856bc9af0de"


def test_the_checksum_is_the_gateware_s() -> None:
    algorithm = Algorithm(
        crc_width=8,
        polynomial=CRC_POLYNOMIAL,
        initial_crc=CRC_INITIAL,
        reflect_input=False,
        reflect_output=False,
        xor_output=0,
    )(data_width=8)
    generator = random.Random(1)
    for size in (0, 1, 6, 9):
        data = generator.randbytes(size)
        assert crc8(data) == algorithm.compute(data)
        assert crc8(data + bytes([crc8(data)])) == 0


def test_a_bit_arrives_before_its_edge_at_the_highest_rate() -> None:
    assert highest_sck_hz(100_000_000) == 25_000_000
    assert highest_sck_hz(12_000_000) == 3_000_000
    # a cycle is left for pins and wires
    assert SpiPins(first=0).output_latency + 1 == MINIMUM_SCK_CYCLES


@pytest.mark.parametrize("bits", [0, 16])
def test_depths_that_are_refused(bits: int) -> None:
    for make in (ReplayQueue, lambda depth_bits: Spi(receive_depth=4, replay_bits=depth_bits)):
        with pytest.raises(ValueError, match=rf"depth_bits must be within 1\.\.15, not {bits}"):
            make(depth_bits=bits)
    with pytest.raises(ValueError, match="depth must be at least 2, not 1"):
        Spi(receive_depth=1, replay_bits=4)


def test_a_board_checks_its_queues() -> None:
    configuration = Configuration(rows=4, columns=4, lanes=4)
    with pytest.raises(ValueError, match="depth_bits must be within"):
        core_behind("spi", configuration, replay_bits=20)

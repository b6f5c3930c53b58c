"""The model of SPI transfers: what is lost, and what is not, whatever the controller does."""

from hypothesis import given
from hypothesis import strategies as st
from slipstick_rtl.phy.spi_protocol import (
    DEVICE_HEADER_BYTES,
    FIRST_SLOT,
    OVERHEAD_BYTES,
    POSITIONS,
    TRAILER_BYTES,
    DeviceHeader,
    HostHeader,
    Trailer,
)
from slipstick_sim.golden.spi import SpiPeripheral


def exchange(device: SpiPeripheral, position: int, received: int, data: bytes, slots: int) -> bytes:
    """A whole transfer; what comes back."""
    header = HostHeader(position, received, len(data), slots).pack()
    return device.transfer(header + b"\xaa" + data.ljust(slots, b"\xbb") + b"\xcc" * TRAILER_BYTES)


def test_a_transfer_moves_bytes_both_ways() -> None:
    device = SpiPeripheral(8, 4)
    assert device.send(b"answer") == 6
    answer = exchange(device, 0, 0, b"quest", 8)
    assert DeviceHeader.unpack(answer[:DEVICE_HEADER_BYTES]) == DeviceHeader(4, 0, 0, 6)
    assert answer[FIRST_SLOT : FIRST_SLOT + 8] == b"answer\0\0"
    assert Trailer.unpack(answer[-TRAILER_BYTES:]) == Trailer(6, 5, 6)
    assert device.received == b"quest"
    assert len(answer) == 8 + OVERHEAD_BYTES


def test_what_was_not_acknowledged_comes_again() -> None:
    device = SpiPeripheral(8, 4)
    device.send(b"answer")
    for _ in range(2):
        assert exchange(device, 0, 0, b"", 4)[FIRST_SLOT:][:4] == b"answ"
    assert exchange(device, 0, 3, b"", 4)[FIRST_SLOT:][:4] == b"wer\0"


def test_a_full_device_takes_no_more_in_this_transfer() -> None:
    device = SpiPeripheral(3, 4)
    assert Trailer.unpack(exchange(device, 0, 0, b"quest", 5)[-TRAILER_BYTES:]) == Trailer(0, 3, 0)
    assert device.received == b"que"


@given(st.data())
def test_no_byte_is_lost_or_invented(data: st.DataObject) -> None:
    """Any transfers, cut anywhere, by a host that believes only headers."""
    out = bytes(range(1, 61))
    back = bytes(range(101, 161))
    device = SpiPeripheral(data.draw(st.integers(2, 9)), data.draw(st.integers(1, 5)))
    taken = b""
    got = bytearray()
    given_to_device = 0
    for _ in range(40):
        given_to_device += device.send(back[given_to_device:])
        header = DeviceHeader.unpack(device.transfer(bytes(DEVICE_HEADER_BYTES)))
        assert header is not None
        assert header.taken == len(taken) + len(device.received)
        slots = data.draw(st.integers(0, 12))
        offered = out[header.taken :][: data.draw(st.integers(0, slots))]
        whole = HostHeader(header.taken, len(got), len(offered), slots).pack() + b"\0" + offered
        whole = whole.ljust(slots + OVERHEAD_BYTES, b"\0")
        cut = data.draw(st.integers(0, 2 * len(whole)))
        answer = device.transfer(whole[:cut])
        trailer = Trailer.unpack(answer[FIRST_SLOT + slots :])
        if trailer is not None:
            got += answer[FIRST_SLOT:][: (trailer.sent - len(got)) % POSITIONS]
        if data.draw(st.booleans()):
            taken += bytes(device.received)
            device.received.clear()
        assert out.startswith(taken + bytes(device.received))
        assert back.startswith(got)

"""Models of wires: how long bytes take between a host and a board, packets and pauses included."""

import re
from dataclasses import dataclass, replace

from slipstick_rtl.phy.ethernet.datagrams import (
    GIGABIT_SLOTS,
    SLOT_BYTES,
    SLOTS,
)
from slipstick_rtl.phy.spi_protocol import DEFAULT_SCK_HZ
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE

from ..errors import InputError

_BITS = 8
_UART_QUEUE = 256
"""As ``RECEIVE_DEPTH`` of the gateware's UART."""
_BOARD_QUEUE = 1024
"""Bytes that other PHYs hold for the core."""


@dataclass(frozen=True, kw_only=True)
class WireModel:
    """A wire, each direction alike.

    Parameters
    ----------
    name : str
        As ``--wire`` has it.
    bytes_per_second : float
        Raw, of one direction, or of both together if ``is_shared``.
    packet_bytes : int
        Most data of a packet; 0: bytes travel alone.
    overhead_bytes : int
        Of a packet, on the wire.
    pause_seconds : float
        Between two packets of a direction.
    flush_seconds : float
        A packet from the board leaves when no byte has been added to it for so long.
    reply_seconds : float
        From the end of a packet from the board, or of a byte, to the program that waits for it:
        the computer's adapter, driver and scheduler.
    is_shared : bool
        Only one direction at a time.
    holds_back : bool
        The board can make the sender wait; otherwise bytes that find its queue full are lost.
    queue_bytes : int
        Of the board's queue towards the core.
    slots : int
        Most packets on their way that the board has not acknowledged; 0: any number.
    """

    name: str
    bytes_per_second: float
    packet_bytes: int = 0
    overhead_bytes: int = 0
    pause_seconds: float = 0.0
    flush_seconds: float = 0.0
    reply_seconds: float = 0.0
    is_shared: bool = False
    holds_back: bool = True
    queue_bytes: int = _BOARD_QUEUE
    slots: int = 0

    def seconds(self, count: int) -> float:
        """Returns the time that bytes take on the wire, one way, packets and pauses included."""
        if not self.packet_bytes:
            return count / self.bytes_per_second
        packets = -(-count // self.packet_bytes)
        whole = (count + packets * self.overhead_bytes) / self.bytes_per_second
        return whole + packets * self.pause_seconds


def _uart(rate: int) -> WireModel:
    return WireModel(
        name=f"uart@{rate}",
        bytes_per_second=rate / BITS_PER_BYTE,
        # a USB adapter in its low-latency mode
        reply_seconds=1e-3,
        holds_back=False,
        queue_bytes=_UART_QUEUE,
    )


def _spi(rate: int) -> WireModel:
    return WireModel(
        name=f"spi@{rate}",
        bytes_per_second=rate / _BITS,
        packet_bytes=4096,
        overhead_bytes=18,
        # Linux' spidev, per transfer; an answer waits for the next transfer
        pause_seconds=0.3e-3,
        # an answer is not cut into transfers: it is in the board's queue before one can begin
        flush_seconds=10e-6,
        reply_seconds=0.3e-3,
    )


_USB_FS = WireModel(
    name="usb-fs",
    # 19 bulk packets of 64 bytes per frame of 1 ms
    bytes_per_second=19 * 64 * 1000,
    packet_bytes=64,
    flush_seconds=2.7e-6,
    reply_seconds=1e-3,
    is_shared=True,
)
_USB_HS = WireModel(
    name="usb-hs",
    # 13 bulk packets of 512 bytes per microframe of 125 us
    bytes_per_second=13 * 512 * 8000,
    packet_bytes=512,
    flush_seconds=1e-6,
    reply_seconds=125e-6,
    is_shared=True,
)
_DATAGRAM_BYTES = 8 + 66
"""Our header; preamble 8, Ethernet 14 + 4, IP 20, UDP 8, gap 12."""


def _ethernet(name: str, bits_per_second: float, slots: int) -> WireModel:
    return WireModel(
        name=name,
        bytes_per_second=bits_per_second / _BITS,
        packet_bytes=SLOT_BYTES,
        overhead_bytes=_DATAGRAM_BYTES,
        flush_seconds=3e-6,
        # interrupt, kernel, wake-up of the program
        reply_seconds=50e-6,
        queue_bytes=slots * SLOT_BYTES,
        slots=slots,
    )


_FIXED = {
    wire.name: wire
    for wire in (
        _USB_FS,
        _USB_HS,
        _ethernet("rmii", 100e6, SLOTS),
        _ethernet("rgmii", 1e9, GIGABIT_SLOTS),
    )
}
_RATED = {"uart": (_uart, 3_000_000), "spi": (_spi, DEFAULT_SCK_HZ)}
WIRES = ("uart[@BAUD]", "spi[@HZ]", *_FIXED)
"""The forms of name that ``find_wire_model`` takes."""


def find_wire_model(name: str, reply_seconds: float | None = None) -> WireModel:
    """Returns the wire of a name, such as ``uart@3000000``, ``spi``, ``usb-hs`` or ``rgmii``.

    Parameters
    ----------
    name : str
    reply_seconds : float, optional
        Instead of the wire's own.

    Raises
    ------
    InputError
        If there is no such wire, or a number is out of range.
    """
    wire = _named(name)
    if reply_seconds is None:
        return wire
    if not 0 <= reply_seconds <= 10:
        raise InputError(f"reply latency must be within 0..10 seconds, not {reply_seconds}")
    return replace(wire, reply_seconds=reply_seconds)


def _named(name: str) -> WireModel:
    if name in _FIXED:
        return _FIXED[name]
    match = re.fullmatch(r"(uart|spi)(?:@([1-9][0-9]{0,8}))?", name)
    if match is None:
        raise InputError(f"wire must be one of {', '.join(WIRES)}, not {name!r}")
    make, usual = _RATED[match[1]]
    return make(int(match[2] or usual))

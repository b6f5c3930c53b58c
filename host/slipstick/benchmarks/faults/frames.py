"""Frames that nobody should send, to a compiled board on Ethernet: it must answer all the same."""

import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.ethernet.datagrams import PORT, SLOT_BYTES, Datagram, Kind

from ...devices.ethernet_frames import Station, answer_arp, pack_frame, unpack_frame
from ...errors import DeviceError

_BOARD = Station.of("02:00:00:00:00:01", "192.168.1.50")
_HOST = Station.of("02:00:00:00:00:02", "192.168.1.2")
_STRANGER = Station.of("02:00:00:00:00:03", "192.168.1.77")
_EVERYBODY = b"\xff" * 6
_HOST_PORT = 40_000
_CHECK_FRAMES = 50
"""After so many the board is asked whether it is there."""
_PATIENCE = 200
_LONGEST = 1600
_TYPES = (0x0800, 0x0806, 0x86DD, 0x8100, 0x0000, 0x05DC)
_ICMP, _TCP = 1, 6
KINDS = 11
"""Number of kinds of frames."""


class FrameSource:
    """Draws frames that are wrong in one way or another.

    Parameters
    ----------
    seed : int

    Members
    -------
    counts : Counter
        Frames by kind.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def draw(self) -> tuple[bytes, bytes | None]:
        """A frame, and a check sequence unless it has the right one."""
        kinds: dict[str, Callable[[], tuple[bytes, bytes | None]]] = {
            "noise": lambda: (self._noise(), None),
            "bits flipped": lambda: (self._flipped(self._good()), None),
            "wrong check sequence": self._misjudged,
            "cut": lambda: (self._cut(self._good()), None),
            "longer": lambda: (self._good() + self._random.randbytes(400), None),
            "runt": lambda: (self._good()[: self._random.randrange(1, 60)], b"\0\0\0\0"),
            "ARP": lambda: (self._arp(), None),
            "IP of other protocols": lambda: (self._ip(), None),
            "fragment": lambda: (self._fragment(), None),
            "other port": lambda: (self._good(port=self._random.randrange(1 << 16)), None),
            "datagram of the protocol": lambda: (self._good(), None),
        }
        name = self._random.choice(list(kinds))
        self.counts[name] += 1
        return kinds[name]()

    def _noise(self) -> bytes:
        frame = bytearray(self._random.randbytes(self._random.randrange(14, _LONGEST)))
        frame[:6] = self._random.choice((_BOARD.mac, _EVERYBODY, bytes(frame[:6])))
        frame[12:14] = struct.pack(">H", self._random.choice(_TYPES))
        return bytes(frame)

    def _good(self, port: int = PORT) -> bytes:
        body = self._random.randbytes(self._random.choice((0, 1, 7, 64, SLOT_BYTES, 1400)))
        payload = Datagram(
            kind=self._random.choice(list(Kind)),
            number=self._random.randrange(1 << 16),
            lease=self._random.randrange(1 << 16),
            body=body,
        ).pack()
        return pack_frame(_STRANGER, _BOARD, self._random.randrange(1 << 16), port, payload)

    def _flipped(self, frame: bytes) -> bytes:
        changed = bytearray(frame)
        for _ in range(self._random.choice((1, 1, 2, 8))):
            changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
        return bytes(changed)

    def _misjudged(self) -> tuple[bytes, bytes | None]:
        frame = self._good().ljust(60, b"\0")
        wrong = zlib.crc32(frame) ^ 1 << self._random.randrange(32)
        return frame, struct.pack("<I", wrong)

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._random.randrange(14, len(frame))]

    def _arp(self) -> bytes:
        body = bytearray(self._random.randbytes(self._random.randrange(20, 60)))
        body[:6] = struct.pack(">HHBB", 1, 0x0800, 6, self._random.choice((4, 4, 5)))
        return _EVERYBODY + _STRANGER.mac + b"\x08\x06" + bytes(body)

    def _ip(self) -> bytes:
        frame = bytearray(self._good())
        frame[14 + 9] = self._random.choice((_ICMP, _TCP, 0, 41, 255))
        frame[14] = self._random.choice((0x45, 0x46, 0x4F, 0x65))
        return bytes(frame)

    def _fragment(self) -> bytes:
        frame = bytearray(self._good())
        frame[14 + 6 : 14 + 8] = struct.pack(">H", self._random.randrange(1, 1 << 14))
        return bytes(frame)


def fuzz_frames(
    hardware: Configuration, frames: int, seed: int, tick: Callable[[int], object]
) -> dict[str, Any]:
    """Sends so many wrong frames; asks the board now and then whether it is there.

    Parameters
    ----------
    hardware : Configuration
    frames, seed : int
    tick : callable
        Told how many have been sent.

    Returns
    -------
    dict
        Figures: frames by kind, questions (``recoveries``), and those that were not answered
        (``without_recovery``).

    Raises
    ------
    DeviceError
        If the simulation's packages are missing, or it cannot be built.
    """
    try:
        from slipstick_sim.toolchain import ToolError
        from slipstick_sim.verilated import ethernet_library
        from slipstick_sim.verilated.ethernet_endpoint import EthernetEndpoint
    except ImportError as error:
        raise DeviceError(f"the simulation needs slipstick[sim]: {error}") from error
    try:
        library = ethernet_library(hardware, ip="192.168.1.50", mac="02:00:00:00:00:01")
    except ToolError as error:
        raise DeviceError(f"the simulation of {hardware.shape}: {error}") from error
    endpoint = EthernetEndpoint(library)
    source = FrameSource(seed)
    asked = unanswered = 0
    try:
        for number in range(frames):
            frame, fcs = source.draw()
            # Time passes between frames. Without it the answer to the board's question for an
            # address can find no room, and the board waits up to 0.8 s for it (``LiteEthPort``).
            _answer(endpoint, endpoint.feed(frame, fcs))
            _answer(endpoint, endpoint.feed(b""))
            if number % _CHECK_FRAMES == _CHECK_FRAMES - 1:
                tick(number)
                asked += 1
                unanswered += not _is_there(endpoint, number & 0xFFFF)
        return {
            "frames": dict(source.counts),
            "sent": frames,
            "seed": seed,
            "recoveries": asked,
            "without_recovery": unanswered,
            "wrong": 0,
            "failed_by_code": {},
            "device_cycles": endpoint.cycles,
        }
    finally:
        endpoint.close()


def _answer(endpoint: Any, came: list[bytes]) -> list[bytes]:
    """Answers the board's questions for addresses; returns what else it sent."""
    others, waiting = list[bytes](), list(came)
    while waiting:
        frame = waiting.pop(0)
        reply = answer_arp(frame, _HOST) or answer_arp(frame, _STRANGER)
        if reply is None:
            others.append(frame)
        else:
            # more may come meanwhile
            waiting += endpoint.feed(reply)
    return others


def _is_there(endpoint: Any, number: int) -> bool:
    """Tells whether the board answers a DISCOVER, with its number."""
    question = Datagram(kind=Kind.DISCOVER, number=number, lease=0, body=b"").pack()
    came = endpoint.feed(pack_frame(_HOST, _BOARD, _HOST_PORT, PORT, question))
    for _ in range(_PATIENCE):
        for frame in _answer(endpoint, came):
            payload = unpack_frame(frame, _HOST)
            if payload is not None and Datagram.unpack(payload[2]).number == number:
                return True
        came = endpoint.feed(b"")
    return False

"""A compiled board on Ethernet: frames in, frames out."""

import struct
import zlib
from pathlib import Path

from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES

from .device import CompiledCore, SimulationError

SLICE_CYCLES = 2048
"""Cycles between two looks at the wire."""

SHORTEST = 60
"""Bytes of a frame without its check sequence; shorter ones are filled with zeros."""

_LONGEST = 0xFFFF - 4
_OVERHEAD_CYCLES = 1000
_SPARE_CYCLES = 100_000


class EthernetEndpoint:
    """The core behind its Ethernet port, at the other end of the wire.

    Frames are without preamble and check sequence (FCS): from the first byte of the receiver's MAC
    address to the last of the payload.

    Parameters
    ----------
    library : Path
        As ``ethernet_library`` returns it.
    timeout_cycles : int
        After which half a frame of the link is forgotten, as of the library.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    """

    def __init__(self, library: Path, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES) -> None:
        self._core = CompiledCore(library)
        self._timeout_cycles = timeout_cycles
        self._last_frame = 0

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    @property
    def byte_cycles(self) -> int:
        """Clock cycles of a byte on the wire."""
        return 1

    @property
    def busy_cycles(self) -> int:
        """Those of them in which the wire could carry something: all."""
        return self._core.cycles

    @property
    def idle(self) -> bool:
        """No program runs, and the last frame is so long ago that half a frame of the link is
        forgotten: nothing can happen until the next, but that a lease runs out or an address is
        asked for."""
        quiet = self._core.cycles - self._last_frame
        return quiet > self._timeout_cycles + _SPARE_CYCLES and self._core.wait_idle(0)

    def feed(self, frame: bytes, fcs: bytes | None = None) -> list[bytes]:
        """Lets a frame arrive, or else a little time pass; returns the frames that came meanwhile.

        Parameters
        ----------
        frame : bytes
            Empty to let time pass. One of less than 60 bytes is filled with zeros.
        fcs : bytes, optional
            A check sequence instead of the right one, and the frame stays as short as it is.

        Raises
        ------
        SimulationError
            If the board sends a frame that is too short, or whose check sequence is wrong.
        ValueError
            If the frame is too long for this.
        """
        if frame:
            if len(frame) > _LONGEST:
                raise ValueError(f"frame must be within {_LONGEST} bytes, not {len(frame)}")
            if fcs is None:
                frame = frame.ljust(SHORTEST, b"\0")
                fcs = struct.pack("<I", zlib.crc32(frame))
            whole = frame + fcs
            self._core.send(struct.pack("<H", len(whole)) + whole, len(whole) + _OVERHEAD_CYCLES)
        else:
            self._core.run_cycles(SLICE_CYCLES)
        frames = self._take()
        if frame or frames:
            self._last_frame = self._core.cycles
        return frames

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

    def _take(self) -> list[bytes]:
        frames = []
        # the wire gives whole frames at once
        while self._core.available:
            (length,) = struct.unpack("<H", self._core.receive(2, 0))
            whole = self._core.receive(length, 0)
            frame, fcs = whole[:-4], whole[-4:]
            if len(frame) < SHORTEST or fcs != struct.pack("<I", zlib.crc32(frame)):
                raise SimulationError(f"the board sent {whole.hex()}, which is no Ethernet frame")
            frames.append(frame)
        return frames

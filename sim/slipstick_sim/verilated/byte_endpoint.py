"""A compiled core without a wire whose time goes on by itself."""

from pathlib import Path

from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES

from .device import CompiledCore
from .endpoint import SLICE_CYCLES

_SPARE_CYCLES = 100_000


class ByteEndpoint:
    """The core at the end of two byte streams, with a queue before it.

    Parameters
    ----------
    library : Path
        As ``accelerator_library`` returns it.
    timeout_cycles : int
        After which half a frame is forgotten, as of the library.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    """

    byte_cycles = 1

    def __init__(self, library: Path, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES) -> None:
        self._core = CompiledCore(library)
        self._timeout_cycles = timeout_cycles
        self._queue = bytearray()
        self._last_byte = 0

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    @property
    def busy_cycles(self) -> int:
        """Those of them in which the streams could carry something: all."""
        return self._core.cycles

    @property
    def idle(self) -> bool:
        """Nothing can happen until the next byte, as of ``SerialEndpoint``."""
        quiet = self._core.cycles - self._last_byte
        is_over = quiet > self._timeout_cycles + _SPARE_CYCLES
        return not self._queue and is_over and self._core.wait_idle(0)

    def feed(self, data: bytes) -> bytes:
        """Puts bytes into the queue; returns what has come since the last time."""
        self._queue += data
        if data:
            self._last_byte = self._core.cycles
        return self._core.receive(self._core.available, 0)

    def rest(self) -> None:
        """Lets a little time pass; a core that is busy takes nothing from the queue."""
        taken = 0
        if self._queue:
            taken = self._core.offer(bytes(self._queue[:SLICE_CYCLES]), SLICE_CYCLES)
            del self._queue[:taken]
        else:
            self._core.run_cycles(SLICE_CYCLES)
        if taken or self._core.available:
            self._last_byte = self._core.cycles

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

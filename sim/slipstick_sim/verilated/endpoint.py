"""Compiled boards whose time goes on by itself: what is on their wires in, and out."""

from pathlib import Path

from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE

from .device import CompiledCore

SLICE_CYCLES = 2048
"""Cycles between two looks at the line: some milliseconds of simulation."""

_REST_CYCLES = 256
"""The same between two transfers: a client that has the next one ready does not wait for long."""

_SPARE_CYCLES = 100_000
_SELECT_CYCLES = 8
"""Between the edges of the chip select and SCK, and between two transfers."""


class SerialEndpoint:
    """The core behind its UART, at the other end of a line.

    Parameters
    ----------
    library : Path
        As ``serial_library`` returns it.
    divisor, timeout_cycles : int
        Clock cycles of a bit, and after which half a frame is forgotten, as of the library.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    """

    def __init__(
        self, library: Path, divisor: int, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES
    ) -> None:
        self._core = CompiledCore(library)
        self._timeout_cycles = timeout_cycles
        self._byte_cycles = BITS_PER_BYTE * divisor
        self._last_byte = 0
        self._disturbance: tuple[int, int] | None = None

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    @property
    def byte_cycles(self) -> int:
        """Clock cycles of a byte on the line."""
        return self._byte_cycles

    @property
    def busy_cycles(self) -> int:
        """Those of them in which the line could carry something: all."""
        return self._core.cycles

    @property
    def idle(self) -> bool:
        """No program runs, and the line has been at rest for so long that half a frame is
        forgotten: nothing can happen until the next byte."""
        quiet = self._core.cycles - self._last_byte
        return quiet > self._timeout_cycles + _SPARE_CYCLES and self._core.wait_idle(0)

    def disturb(self, seed: int, mean_cycles: int) -> None:
        """As ``CompiledCore.disturb``, from the next ``feed`` on; any thread may ask for it."""
        self._disturbance = seed, mean_cycles

    @property
    def disturbances(self) -> dict[str, int]:
        """As ``CompiledCore.disturbances``."""
        return self._core.disturbances

    def feed(self, data: bytes) -> bytes:
        """Lets bytes arrive, without a pause between them, or else a little time pass; returns
        what came meanwhile. SimulationError if the line does not move."""
        if self._disturbance is not None:
            self._core.disturb(*self._disturbance)
            self._disturbance = None
        if data:
            self._core.send(data, (len(data) + 1) * self._byte_cycles + _SPARE_CYCLES)
        else:
            self._core.run_cycles(SLICE_CYCLES)
        answers = self._core.receive(self._core.available, 0)
        if data or answers:
            self._last_byte = self._core.cycles
        return answers

    def close(self) -> None:
        """Frees the core."""
        self._core.close()


class SpiEndpoint:
    """The core behind its SPI peripheral, at the other end of the wires.

    Parameters
    ----------
    library : Path
        As ``spi_library`` returns it.
    divisor : int
        Clock cycles of a period of SCK, as of the library.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    """

    def __init__(self, library: Path, divisor: int) -> None:
        self._core = CompiledCore(library)
        self._byte_cycles = 8 * divisor
        self._last_transfer = 0
        self._selected_cycles = 0

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    @property
    def byte_cycles(self) -> int:
        """Clock cycles of a byte on the wires."""
        return self._byte_cycles

    @property
    def busy_cycles(self) -> int:
        """Those of them in which the chip was selected."""
        return self._selected_cycles

    @property
    def idle(self) -> bool:
        """No program runs, and the last transfer is so long ago that half a frame is forgotten:
        nothing can happen until the next."""
        quiet = self._core.cycles - self._last_transfer
        return quiet > DEFAULT_TIMEOUT_CYCLES + _SPARE_CYCLES and self._core.wait_idle(0)

    def transfer(self, data: bytes) -> bytes:
        """Sends bytes under one chip select; returns those that come back at the same time."""
        core = self._core
        begin = core.cycles
        core.select(True)
        core.run_cycles(_SELECT_CYCLES)
        answer = core.transact(data, len(data), (len(data) + 1) * self._byte_cycles)
        # SCK falls
        core.run_cycles(self._byte_cycles // 8)
        core.select(False)
        core.run_cycles(_SELECT_CYCLES)
        self._last_transfer = core.cycles
        self._selected_cycles += core.cycles - begin
        return answer

    def rest(self) -> None:
        """Lets a little time pass."""
        self._core.run_cycles(_REST_CYCLES)

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

"""Devices for the fault suite, the golden model and the compiled RTL: their bytes, and their time.

Unlike those of ``open_device`` they stay as they are while hosts come and go on their line.
"""

from typing import Protocol

from slipstick_rtl.config import Configuration

from .devices.exchange import Patience
from .devices.transport import LoopbackTransport, Transport
from .errors import DeviceError

BOARDS = ("model", "sim")

_POLL_CYCLES = 3_000
_CYCLES_PER_SECOND = 100_000
"""Of the device's time a second of the host's patience is worth: enough for every answer."""


class Board(Protocol):
    """A device whose line any host may take."""

    configuration: Configuration
    transport: Transport
    patience: Patience
    stall_seconds: float

    @property
    def cycles(self) -> int | None:
        """Clock cycles that have passed, None without a clock."""
        ...

    def idle(self, seconds: float) -> None:
        """Lets time pass while nothing arrives."""
        ...

    def forget(self) -> None:
        """Lets so much time pass that half a frame is forgotten."""
        ...

    def pause(self, seconds: float) -> None:
        """A host's pause between two looks at a run: short, so that it looks often."""
        ...

    def close(self) -> None:
        """Ends the device."""
        ...


class ModelBoard:
    """The golden model behind the golden end of the link; silence there is imagined.

    Parameters
    ----------
    configuration : Configuration
    """

    cycles = None
    stall_seconds = 3.0

    def __init__(self, configuration: Configuration) -> None:
        from slipstick_rtl.link.link import DEFAULT_TIMEOUT_CYCLES
        from slipstick_sim.golden.core import GoldenCore
        from slipstick_sim.golden.link import Endpoint

        self.configuration = configuration
        self.core = GoldenCore(configuration)
        self._endpoint = Endpoint(configuration, self.core)
        self._timeout_seconds = DEFAULT_TIMEOUT_CYCLES / configuration.clock_hz
        self.transport: Transport = LoopbackTransport(self._endpoint)
        self.patience = Patience(timeout_seconds=1.0, silence_seconds=0.001)

    def idle(self, seconds: float) -> None:
        """Half a frame is forgotten if that is long enough."""
        if seconds > self._timeout_seconds:
            self._endpoint.time_out()

    def forget(self) -> None:
        """Half a frame is forgotten."""
        self._endpoint.time_out()

    def pause(self, seconds: float) -> None:
        """A run has ended before anyone looks."""

    def close(self) -> None:
        """There is nothing to end."""


class SimulatedBoard:
    """The RTL, compiled by Verilator.

    Parameters
    ----------
    configuration : Configuration

    Raises
    ------
    DeviceError
        If the simulation cannot be built.
    """

    stall_seconds = 1.0

    def __init__(self, configuration: Configuration) -> None:
        try:
            from slipstick_rtl.link.link import DEFAULT_TIMEOUT_CYCLES
            from slipstick_sim.compiled.device import CompiledCore, CompiledTransport
            from slipstick_sim.toolchain import ToolError
        except ImportError as error:
            raise DeviceError(f"board sim needs slipstick[sim]: {error}") from error
        try:
            self._core = CompiledCore.of(configuration)
        except (ToolError, OSError) as error:
            raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
        self.configuration = configuration
        self.transport: Transport = CompiledTransport(
            self._core, cycles_per_second=_CYCLES_PER_SECOND
        )
        self.patience = Patience(timeout_seconds=0.3, silence_seconds=0.02)
        self._forget_cycles = DEFAULT_TIMEOUT_CYCLES + 1000

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    def idle(self, seconds: float) -> None:
        """Runs for the cycles that the seconds are worth."""
        self._core.run_cycles(round(seconds * _CYCLES_PER_SECOND))

    def forget(self) -> None:
        """Runs for longer than the link's timeout."""
        self._core.run_cycles(self._forget_cycles)

    def pause(self, seconds: float) -> None:
        """Runs for some thousand cycles, or until the run ends."""
        self._core.wait_idle(_POLL_CYCLES)

    def close(self) -> None:
        """Frees the core."""
        self._core.close()


def open_board(name: str, configuration: Configuration) -> Board:
    """The board of one of the names in ``BOARDS``; DeviceError for others."""
    if name == "model":
        return ModelBoard(configuration)
    if name == "sim":
        return SimulatedBoard(configuration)
    raise DeviceError(f"the board must be one of {', '.join(BOARDS)}, not {name!r}")

"""Devices for the fault suite, the golden model and the compiled RTL: their bytes, and their time.

Unlike those of ``open_device`` they stay as they are while hosts come and go on their line.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DeviceStatus

from ...devices.link.patience import Patience
from ...devices.link.transport import LoopbackTransport, Transport
from ...errors import DeviceError

if TYPE_CHECKING:
    from slipstick_sim.golden.core import GoldenCore
    from slipstick_sim.verilated.device import CompiledCore

BOARDS = ("model", "sim", "compact", "streamed")
"""The golden model, the compiled RTL, that of the compact engine, and one that is too small."""

TIMEOUT_CYCLES = 1024
"""Timeout of the simulated link: short, so that half a frame is forgotten soon."""

_PAUSE_CYCLES = 50
_CYCLES_PER_SECOND = 20_000
"""Cycles of the device for a second of the host's patience: enough for every answer."""


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

    def power_cycle(self) -> None:
        """Loses all memories, what was being received, and what was to be sent."""
        ...

    def calm(self, calm: bool) -> None:
        """Ends or begins what disturbs the board's own wires, if it has any."""
        ...

    def close(self) -> None:
        """Ends the device."""
        ...


class _Core:
    """The golden core, which would refuse the programs of an intruder, as hardware bears them: it
    runs until it is reset."""

    def __init__(self, core: "GoldenCore") -> None:
        self._core = core
        self._stuck = False
        self.write, self.read = core.write, core.read

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        from slipstick_sim.golden.core import DeadlockError

        try:
            self._core.run(pcs, clear)
        except (DeadlockError, ValueError):
            self._stuck = True

    def status(self) -> DeviceStatus:
        return replace(self._core.status(), running=self._stuck)

    def wait(self) -> bool:
        """Tells whether the run ends: one that is stuck does not."""
        return not self._stuck

    def reset(self) -> None:
        self._stuck = False
        self._core.reset()


class ModelBoard:
    """The golden model behind the golden end of the link; silence there is imagined.

    Parameters
    ----------
    configuration : Configuration
    """

    cycles = None
    stall_seconds = 3.0

    def __init__(self, configuration: Configuration) -> None:
        from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES

        self.configuration = configuration
        self._timeout_seconds = DEFAULT_TIMEOUT_CYCLES / configuration.clock_hz
        self.patience = Patience(timeout_seconds=1.0, silence_seconds=0.001)
        self.transport: Transport = self
        self.power_cycle()

    def power_cycle(self) -> None:
        """A new core, and a new end of the link."""
        from slipstick_sim.golden.core import GoldenCore
        from slipstick_sim.golden.link import Endpoint

        self.core = GoldenCore(self.configuration)
        self._endpoint = Endpoint(self.configuration, _Core(self.core))
        self._line = LoopbackTransport(self._endpoint)

    def send(self, data: bytes) -> None:
        """Sends to the end of the link that there is now."""
        self._line.send(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Receives the answer of the link's end."""
        return self._line.receive(count, timeout_seconds)

    def idle(self, seconds: float) -> None:
        """Half a frame is forgotten if that is long enough."""
        if seconds > self._timeout_seconds:
            self._endpoint.time_out()

    def forget(self) -> None:
        """Half a frame is forgotten."""
        self._endpoint.time_out()

    def pause(self, seconds: float) -> None:
        """A run has ended before anyone looks."""

    def calm(self, calm: bool) -> None:
        """There are no wires."""

    def close(self) -> None:
        """There is nothing to end."""


class CompiledBoard:
    """Runs a board whose RTL is compiled by Verilator: the base of such boards.

    Parameters
    ----------
    configuration : Configuration
    core : CompiledCore
        At whose bytes, or pins, the hosts are.
    cycles_per_second : int
        Of the board's time a second of the host's patience is worth.
    """

    stall_seconds = 0.2
    forget_cycles = TIMEOUT_CYCLES + 20
    """Longer than the link's timeout."""

    def __init__(
        self, configuration: Configuration, core: "CompiledCore", cycles_per_second: int
    ) -> None:
        self.configuration = configuration
        self._core, self._cycles_per_second = core, cycles_per_second

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    def idle(self, seconds: float) -> None:
        """Runs for the cycles that the seconds are worth."""
        self._core.run_cycles(round(seconds * self._cycles_per_second))

    def forget(self) -> None:
        """Runs for longer than the link's timeout."""
        self._core.run_cycles(self.forget_cycles)

    def pause(self, seconds: float) -> None:
        """Runs for some cycles, or until the run ends."""
        self._core.wait_idle(_PAUSE_CYCLES)

    def power_cycle(self) -> None:
        """A core as after configuration."""
        self._core.reset()

    def close(self) -> None:
        """Frees the core."""
        self._core.close()


class SimulatedBoard(CompiledBoard):
    """The RTL, compiled by Verilator.

    Parameters
    ----------
    configuration : Configuration

    Raises
    ------
    DeviceError
        If the simulation cannot be built.
    """

    def __init__(self, configuration: Configuration) -> None:
        try:
            from slipstick_sim.toolchain import ToolError
            from slipstick_sim.verilated.device import CompiledCore, CompiledTransport
        except ImportError as error:
            raise DeviceError(f"board sim needs slipstick[sim]: {error}") from error
        try:
            core = CompiledCore.of(configuration, timeout_cycles=TIMEOUT_CYCLES)
        except (ToolError, OSError) as error:
            raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
        super().__init__(configuration, core, _CYCLES_PER_SECOND)
        self.transport: Transport = CompiledTransport(core, cycles_per_second=_CYCLES_PER_SECOND)
        # the silence is longer than the link's timeout
        self.patience = Patience(timeout_seconds=0.1, silence_seconds=0.06)

    def calm(self, calm: bool) -> None:
        """There are no wires."""


def open_board(name: str, configuration: Configuration) -> Board:
    """The board of one of the names in ``BOARDS``; DeviceError for others."""
    if name == "model":
        return ModelBoard(configuration)
    if name in BOARDS:
        return SimulatedBoard(configuration)
    raise DeviceError(f"the board must be one of {', '.join(BOARDS)}, not {name!r}")

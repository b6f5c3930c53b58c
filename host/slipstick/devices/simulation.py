"""The compiled RTL as a device: real frames over simulated byte streams, and a log of events."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES, WAIT_TIMEOUTS

from ..errors import DeviceError
from ..targets import describe
from .link import LinkDevice, Patience

if TYPE_CHECKING:
    from slipstick_sim.verilated.device import CompiledTransport

_CYCLES_PER_SECOND = 1_000_000
"""About what is simulated in a second: so timeouts keep their meaning."""


class SimulationDevice(LinkDevice):
    """The RTL of a configuration, compiled by Verilator; the first time that takes a minute.

    Parameters
    ----------
    configuration : Configuration
    library : Path, optional
        One of this configuration's core that was built already; by default the fast one.

    Raises
    ------
    DeviceError
        If the packages or tools that simulate are missing, or fail.
    """

    def __init__(self, configuration: Configuration, library: Path | None = None) -> None:
        try:
            from slipstick_sim.toolchain import ToolError
            from slipstick_sim.verilated.device import CompiledCore, CompiledTransport
        except ImportError as error:
            raise DeviceError(
                f"device sim needs the simulation's packages: pip install slipstick[sim] ({error})"
            ) from error
        try:
            self._core = (
                CompiledCore.of(configuration, label=describe(configuration))
                if library is None
                else CompiledCore(library)
            )
        except (ToolError, OSError) as error:
            raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
        transport = _SimulatedTransport(
            CompiledTransport(self._core, cycles_per_second=_CYCLES_PER_SECOND)
        )
        patience = Patience(
            wait_seconds=1.1 * WAIT_TIMEOUTS * DEFAULT_TIMEOUT_CYCLES / _CYCLES_PER_SECOND
        )
        super().__init__(
            transport, configuration=configuration, patience=patience, pause=transport.pause
        )
        self.cycles_per_second = float(_CYCLES_PER_SECOND)

    @property
    def clock_cycles(self) -> int:
        """Clock cycles since the opening of the device, transfers and pauses included."""
        return self._core.cycles

    @contextmanager
    def recording(self, path: Path, scope: str = "") -> Iterator[None]:
        """Records signals in the cycles of the body's runs: how often each changes (SAIF), or all
        its values (VCD); the library must be one that does. ``scope``: of one instance alone."""
        with _simulation_errors(), self._core.recording(path, scope):
            yield

    def take_events(self) -> dict[str, np.ndarray]:
        """Returns the events of the core since the last call.

        Returns
        -------
        dict of arrays of int64
            For each of ``slipstick_sim.verilated.device.EVENT_NAMES`` the clock cycles, ascending,
            in which it happened, counted from the opening of the device.
        """
        from slipstick_sim.verilated.device import EVENT_NAMES

        with _simulation_errors():
            events = self._core.take_events()
        return {
            name: events["cycle"][events["kind"] == kind].astype(np.int64)
            for kind, name in enumerate(EVENT_NAMES)
        }


class _SimulatedTransport:
    """A compiled core's transport whose failures are a ``DeviceError``."""

    def __init__(self, transport: "CompiledTransport") -> None:
        self._transport = transport

    def send(self, data: bytes) -> None:
        with _simulation_errors():
            self._transport.send(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        with _simulation_errors():
            return self._transport.receive(count, timeout_seconds)

    def pause(self, seconds: float) -> None:
        """Lets the core work on."""
        with _simulation_errors():
            self._transport.pause(seconds)

    def close(self) -> None:
        self._transport.close()


@contextmanager
def _simulation_errors() -> Iterator[None]:
    from slipstick_sim.verilated.device import SimulationError

    try:
        yield
    except SimulationError as error:
        raise DeviceError(f"the simulation failed: {error}") from error

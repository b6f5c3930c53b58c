"""Recording an inference: the pulses that the simulated core gives as instructions run."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import DeviceStatus

from ..errors import DeviceError
from ..runtime.executor import Execution, Values
from .profiles import LayerProfile, RunEvents, profile


@runtime_checkable
class LoggingDevice(Protocol):
    """A device that logs the core's pulses: the compiled RTL."""

    def take_events(self) -> dict[str, np.ndarray]:
        """Cycles of each kind of pulse since they were taken last; cycle 0 is any."""
        ...


class Recorder:
    """Runs inferences and keeps what the core did in the last one.

    Parameters
    ----------
    execution : Execution

    Raises
    ------
    DeviceError
        If the device keeps no log.
    """

    def __init__(self, execution: Execution) -> None:
        if not isinstance(execution.device, LoggingDevice):
            raise DeviceError("the device must log its events, as sim does, to be profiled")
        self._device = execution.device
        self._execution = execution
        self._runs: list[RunEvents] = []

    @property
    def cycles(self) -> int:
        """Cycles of the last inference."""
        return sum(run.cycles for run in self._runs)

    def infer(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """One inference; see ``Execution.infer``."""
        self._runs = []
        self._device.take_events()
        self._execution.on_run = self._take
        try:
            return self._execution.infer(inputs)
        finally:
            self._execution.on_run = None

    @property
    def runs(self) -> tuple[RunEvents, ...]:
        """Returns the core's events in the last inference, run by run."""
        return tuple(self._runs)

    def layers(self) -> list[LayerProfile]:
        """The last inference, layer by layer."""
        return profile(self._execution.program, self._runs)

    def _take(self, status: DeviceStatus) -> None:
        events = self._device.take_events()
        last = max((int(cycles[-1]) for cycles in events.values() if len(cycles)), default=0)
        # the log does not say when the run began; it ended with its last pulse, to a few cycles
        begin = last - status.cycles
        self._runs.append(
            RunEvents(
                status.cycles,
                {stream: events[f"{stream}_start"] - begin for stream in STREAMS},
                {stream: events[f"{stream}_done"] - begin for stream in STREAMS},
                begin,
            )
        )

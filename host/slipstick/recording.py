"""Recording an inference: the pulses that the simulated core gives as instructions run."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from slipstick_rtl.link.protocol import DeviceStatus

from .errors import DeviceError
from .execution import Execution, Values
from .profiles import LayerProfile, RunEvents, profile

MATRIX_START, MATRIX_DONE, POST_START, POST_DONE = range(4)
"""Kinds of pulses, in the order of the core's ``trace``."""


@runtime_checkable
class LoggingDevice(Protocol):
    """A device that logs the core's pulses: the compiled RTL."""

    def take_events(self) -> np.ndarray:
        """Rows (cycle, kind) since they were taken last; cycle 0 is the start of the last run."""
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
        self._execution.on_run = self._take
        try:
            return self._execution.infer(inputs)
        finally:
            self._execution.on_run = None

    def layers(self) -> list[LayerProfile]:
        """The last inference, layer by layer."""
        return profile(self._execution.program, self._runs)

    def _take(self, status: DeviceStatus) -> None:
        events = self._device.take_events()

        def cycles(kind: int) -> np.ndarray:
            return events[events[:, 1] == kind, 0].astype(np.int64)

        self._runs.append(
            RunEvents(
                status.cycles,
                {"matrix": cycles(MATRIX_START), "post": cycles(POST_START)},
                {"matrix": cycles(MATRIX_DONE), "post": cycles(POST_DONE)},
            )
        )

"""Carries out a program's steps on a device's memories, or on those of many images at once."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import DeviceStatus, Space

from ..devices.base import Device
from ..devices.link.exchange import LinkError
from ..errors import DeviceError
from ..program.steps import Image, Placement, RunStep
from .placement_io import gather, runs, stored_bytes

COUNTER_MASK = 0xFFFF
"""The device's completion counters have 16 bits."""


class Memory(Protocol):
    """The memories of a device, or of a batch core."""

    def load(self, image: Image) -> None: ...

    def upload(self, place: Placement, value: np.ndarray) -> None: ...

    def start(self, step: RunStep) -> None: ...

    def finish(self, step: RunStep) -> None: ...

    def download(self, place: Placement) -> np.ndarray: ...


class RunUnansweredError(LinkError):
    """A run that has begun or not."""


class DeviceMemory:
    """Transfers and runs of a device, for one sample at a time.

    Parameters
    ----------
    device : Device
    name : str
        The program's, for messages.
    finished : callable
        Told the status after each run.
    """

    def __init__(self, device: Device, name: str, finished: Callable[[DeviceStatus], None]) -> None:
        self._device, self._name, self._finished = device, name, finished
        self._completed = (0,) * len(STREAMS)

    def load(self, image: Image) -> None:
        """Writes weights, parameters or instructions to the device."""
        self._device.write(Space(image.space), image.address, image.data)

    def upload(self, place: Placement, value: np.ndarray) -> None:
        """Writes one sample's tensor to the device."""
        data = value.astype(np.int8, copy=False).tobytes()
        for address, span in runs(place):
            self._device.write(Space.ACTIVATIONS, address, data[span])

    def start(self, step: RunStep) -> None:
        """Starts both streams."""
        try:
            self._device.run(step.pcs, step.clear_counters)
        except LinkError as error:
            if error.code == "NO_ANSWER":
                raise RunUnansweredError(error.code, error.detail) from error
            raise

    def finish(self, step: RunStep) -> None:
        """Waits for the streams' ends."""
        status = self._device.wait()
        if status.bad_instruction:
            raise DeviceError(f"program {self._name!r}: the device met a bad instruction")
        self._check_completion(step, status)
        self._finished(status)

    def _check_completion(self, step: RunStep, status: DeviceStatus) -> None:
        """A RESET, of another host or of the board, ends a run as its HALTs do: the counts tell."""
        before = (0,) * len(STREAMS) if step.clear_counters else self._completed
        pairs = zip(before, step.instructions, strict=True)
        expected = tuple(a + b & COUNTER_MASK for a, b in pairs)
        self._completed = status.done
        if self._completed != expected:
            told = DeviceStatus.idle(expected).progress()
            raise LinkError(
                "RUN_STOPPED",
                f"the device was reset while it ran: it must complete {told}, not"
                f" {status.progress()}; run again",
            )

    def download(self, place: Placement) -> np.ndarray:
        """Reads one sample's tensor from the device, int8 (1, elements)."""
        data = self._device.read(place.address, stored_bytes(place))
        return gather(place, np.frombuffer(data, np.int8)[np.newaxis])


class BatchMemory:
    """Transfers and runs of a batch core."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def load(self, image: Image) -> None:
        self._core.write(image.space, image.address, image.data)

    def upload(self, place: Placement, value: np.ndarray) -> None:
        flat = value.reshape(len(value), -1).astype(np.int8, copy=False)
        for address, span in runs(place):
            self._core.write_batch(address, flat[:, span])

    def start(self, step: RunStep) -> None:
        self._core.run(step.pcs, step.clear_counters)

    def finish(self, step: RunStep) -> None:
        """It is over."""

    def download(self, place: Placement) -> np.ndarray:
        return gather(place, self._core.read_batch(place.address, stored_bytes(place)))

"""Carries out a program's steps on a device's memories, or on those of many images at once."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import DeviceStatus, Space

from ..devices.base import Device
from ..devices.link import LinkDevice, LinkError, LostAnswerError, Request
from ..program.steps import Image, Placement, RunStep
from .placement_io import gather, region_of, runs, stored_bytes

COUNTER_MASK = 0xFFFF
"""The device's completion counters have 16 bits."""


Download = Callable[[], np.ndarray]
"""A tensor that was asked for: waits for its bytes, and returns them."""


class Memory(Protocol):
    """The memories of a device, or of a batch core."""

    def load(self, image: Image) -> None: ...

    def upload(self, place: Placement, value: np.ndarray) -> None: ...

    def start(self, step: RunStep) -> None: ...

    def finish(self, step: RunStep) -> None: ...

    def download(self, place: Placement) -> Download: ...

    def settle(self) -> None: ...


class DeviceMemory:
    """Transfers and runs of a device, for one sample at a time; each is done when it returns.

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
        self._device.run(step.pcs, step.clear_counters)

    def finish(self, step: RunStep) -> None:
        """Waits for the streams' ends."""
        self._take(step, self._device.wait())

    def settle(self) -> None:
        """All is done already."""

    def _take(self, step: RunStep, status: DeviceStatus) -> None:
        """Checks the state after a run."""
        if status.bad_instruction:
            raise LinkError(
                "BAD_INSTRUCTION",
                f"the device met a bad instruction of program {self._name!r} after"
                f" {status.progress()}",
            )
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

    def download(self, place: Placement) -> Download:
        """Reads one sample's tensor from the device, int8 (1, elements)."""
        data = self._device.read(place.address, stored_bytes(place))
        value = gather(place, np.frombuffer(data, np.int8)[np.newaxis])
        return lambda: value


class SubmittedMemory(DeviceMemory):
    """Transfers and runs of a device at the end of a link: only tensors are waited for.

    Parameters
    ----------
    device : LinkDevice
    name : str
        The program's, for messages.
    finished : callable
        Told the status after each run; None if its answer was lost.
    run_cycles : float
        How long a run takes, probably.
    """

    def __init__(
        self,
        device: LinkDevice,
        name: str,
        finished: Callable[[DeviceStatus | None], None],
        run_cycles: float,
    ) -> None:
        super().__init__(device, name, finished)
        self._link = device
        self._told = finished
        self._run_seconds = run_cycles / device.cycles_per_second
        self._running = False
        self._states: list[tuple[RunStep, Request]] = []

    def forget(self) -> None:
        """Nothing is on its way: after a reset."""
        self._running = False
        self._states.clear()

    def load(self, image: Image) -> None:
        """Submits weights, parameters or instructions."""
        waiting = self._must_wait()
        self._link.submit_write(Space(image.space), image.address, image.data, waiting=waiting)

    def upload(self, place: Placement, value: np.ndarray) -> None:
        """Submits one sample's tensor."""
        data = value.astype(np.int8, copy=False).tobytes()
        if not data:
            return
        waiting = self._must_wait()
        region = region_of(place)
        if region is not None:
            self._link.submit_put(region, data, waiting=waiting)
            return
        for address, span in runs(place):
            self._link.submit_write(Space.ACTIVATIONS, address, data[span], waiting=waiting)
            waiting = False

    def start(self, step: RunStep) -> None:
        """Submits a run."""
        self._link.submit_run(
            step.pcs,
            step.clear_counters,
            waiting=self._must_wait(),
            run_seconds=self._run_seconds,
        )
        self._link.push()

    def finish(self, step: RunStep) -> None:
        """Lets all that is submitted from now on wait for the end of the run."""
        self._states.append((step, self._link.submit_status(waiting=True)))
        self._running = True

    def download(self, place: Placement) -> Download:
        """Asks for one sample's tensor, int8 (1, elements)."""
        size, waiting = stored_bytes(place), self._must_wait()
        requests = self._link.submit_read(place.address, size, waiting=waiting)

        def wait() -> np.ndarray:
            data = b"".join(self._link.answer(request) for request in requests)
            return gather(place, np.frombuffer(data, np.int8)[np.newaxis])

        return wait

    def settle(self) -> None:
        """Waits until all is done, and checks what the runs said."""
        states, self._states = self._states, []
        for step, request in states:
            try:
                status = self._link.state_of(request)
            except LostAnswerError:
                self._told(None)
                continue
            self._take(step, status)
        self._link.finish()

    def _must_wait(self) -> bool:
        waits, self._running = self._running, False
        return waits


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

    def download(self, place: Placement) -> Download:
        value = gather(place, self._core.read_batch(place.address, stored_bytes(place)))
        return lambda: value

    def settle(self) -> None:
        """All is done already."""

"""Devices as workers: each computes the products of its jobs, and is opened again if it fails."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from slipstick_rtl.config import Configuration

from ...devices import Device, DeviceGroup, open_device
from ...devices.group import GroupKind, group_of
from ...errors import DeviceError
from ...runtime.sharing import exclusive
from ..device.products import DeviceProducts
from ..dram_step.opening import CountedLink, make_device_trainer
from ..dram_step.trainer import DramTrainer
from ..network import initial_parameters
from ..opened_device import GOLDEN, CountingDevice, wanted_hardware
from ..trainer import Trainer
from .crew import PATIENCE_SECONDS, Crew, GoldenWorker, ThreadCrew, Worker
from .jobs import Job, JobResult, WorkerSetup, do_job

_CLOSE_SECONDS = 10.0


class DeviceWorker:
    """A device whose configuration has ``training``.

    With DRAM, its jobs run from there, if the network's layers allow it; of steps on a worker's
    own, the device updates the weights where it can.

    Parameters
    ----------
    setup : WorkerSetup
    device : Device
    reopen : callable
        Given the device that failed, returns one that answers; DeviceError if there is none.
    name : str
    """

    def __init__(
        self, setup: WorkerSetup, device: Device, reopen: Callable[[Device], Device], name: str
    ) -> None:
        self.name, self._setup, self._device, self._reopen = name, setup, device, reopen
        self._trainer: Trainer | None = None
        self._counted: CountingDevice | CountedLink | None = None
        # of trainers before
        self._moved = self._from_dram = 0
        self._stopped = False

    @property
    def bytes_moved(self) -> int:
        """Written to the device and read from it, and to those that failed before.

        With DRAM the frames of the wire count, otherwise contents alone.
        """
        return self._moved + (0 if self._counted is None else self._counted.bytes_moved)

    @property
    def from_dram(self) -> int:
        """Steps, or parts of them, that ran from DRAM."""
        trainer = self._trainer
        return self._from_dram + (trainer.from_dram if isinstance(trainer, DramTrainer) else 0)

    def do(self, job: Job) -> JobResult:
        """Does a job while nobody else uses the device."""
        with exclusive(self._device) as sharing:
            if self._trainer is None or not sharing.owned_by(self):
                # another one's program may be where ours was
                self._forget()
                self._check()
                initial = initial_parameters(self._setup.network, 0)
                made = make_device_trainer(self._setup, initial, self._device)
                self._trainer, self._counted = made.trainer, made.counted
                sharing.give_to(self)
                # what was said meanwhile reached no trainer
                self._check()
            try:
                return do_job(self._trainer, job)
            except BaseException:
                self._forget()
                sharing.give_to(None)
                raise

    def _forget(self) -> None:
        """The trainer is of no more use; what it has moved counts."""
        self._moved, self._from_dram = self.bytes_moved, self.from_dram
        self._trainer = self._counted = None

    def _check(self) -> None:
        if self._stopped:
            raise DeviceError(f"device {self.name} is wanted no more")

    def reopen(self) -> None:
        """Opens the device again."""
        self._forget()
        self._check()
        self._device = self._reopen(self._device)

    def stop(self) -> None:
        """The job that it does ends at its next transfer."""
        self._stopped = True
        for each in (self._trainer, self._counted):
            if isinstance(each, DramTrainer | CountingDevice):
                each.stop()


def group_workers(group: DeviceGroup, setup: WorkerSetup) -> list[DeviceWorker]:
    """A worker per member of a group.

    Raises
    ------
    CapacityError
        If the members' hardware has no ``training``.
    """
    for member in group.members:
        DeviceProducts(member)
    return [
        DeviceWorker(setup, member, _reopener(group, number), name)
        for number, (member, name) in enumerate(zip(group.members, group.names, strict=True))
    ]


def _close_when_free(group: DeviceGroup) -> None:
    """Closes devices when their jobs have ended; while one hangs, they stay open."""

    def close() -> None:
        with ExitStack() as stack:
            for member in group.members:
                stack.enter_context(exclusive(member))
            group.close()

    thread = threading.Thread(target=close, name="slipstick-train-close", daemon=True)
    thread.start()
    thread.join(_CLOSE_SECONDS)


def _reopener(group: DeviceGroup, number: int) -> Callable[[Device], Device]:
    return lambda broken: group.reopen(number, broken)


@contextmanager
def open_device_crew(
    device: str,
    setup: WorkerSetup,
    configuration: Configuration | None = None,
    *,
    opener: Callable[[str, Configuration | None], Device] = open_device,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[Crew]:
    """The devices of a name as a crew.

    Parameters
    ----------
    device : str
        ``pool:D1,D2,...``. A member ``model`` is the golden functions alone, unless there is a
        configuration.
    setup : WorkerSetup
    configuration : Configuration, optional
        As for ``open_device``; without it ``sim-training`` counts where no name has a target.
    opener : callable
    patience : float
        As for :class:`ThreadCrew`.

    Raises
    ------
    DeviceError
        If the devices cannot be opened, or the name is no pool's.
    """
    group = group_of(device)
    if group is None or group[0] is not GroupKind.POOL:
        raise DeviceError(f"device {device!r} must be a pool to train on many: pool:D1,D2,...")
    names = group[1]
    golden = [configuration is None and name == GOLDEN for name in names]
    others = [name for name, is_golden in zip(names, golden, strict=True) if not is_golden]
    with ExitStack() as stack:
        workers: Iterator[Worker] = iter(())
        if others:
            wanted = configuration or wanted_hardware(device, None)
            opened = opener(f"{GroupKind.POOL}:{','.join(others)}", wanted)
            assert isinstance(opened, DeviceGroup)
            stack.callback(_close_when_free, opened)
            workers = iter(group_workers(opened, setup))
        crew = [
            GoldenWorker(setup.trainer(), name) if is_golden else next(workers)
            for name, is_golden in zip(names, golden, strict=True)
        ]
        yield stack.enter_context(ThreadCrew(crew, patience=patience))

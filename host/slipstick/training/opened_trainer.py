"""Opens a trainer and what multiplies for it: one device, a pool, or the workers of a cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..cluster.address import parse_address
from ..cluster.opening import told_devices
from ..devices import open_device
from ..devices.group import GroupKind, group_of
from ..errors import InputError
from ..loading import configuration_of
from .dram_step.opening import CountedLink, make_device_trainer
from .dram_step.trainer import DramTrainer
from .int8 import Int8Arithmetic, Range
from .network import Initial
from .opened_device import (
    GOLDEN,
    CountingDevice,
    check_device,
    is_golden,
    wanted_hardware,
)
from .parallel.crew import Crew
from .parallel.devices import open_device_crew
from .parallel.division import Division
from .parallel.jobs import WorkerSetup
from .parallel.local import LocalTrainer
from .parallel.on_cluster import ClusterCrew, open_cluster_crew
from .parallel.trainer import CrewTrainer, ParallelTrainer
from .trainer import Trainer


class Updater(StrEnum):
    """Who updates the weights of steps from a board's DRAM."""

    DEVICE = "device"
    """They stay in its DRAM. The host does it where the device cannot."""

    HOST = "host"
    """They go up in each step, and their gradients come down: less work for the board."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Says where a training multiplies.

    Parameters
    ----------
    device : str
        ``GOLDEN``, a device as of ``open_device``, or ``pool:D1,D2,...``.
    target : str, optional
        The hardware; by default what the device's name says, or sim-training.
    cluster : str, optional
        Dask's workers: ``local:N``, each with such a device, or the address of a scheduler. Its
        workers multiply in the golden functions; with a target, those with such a board do, on it.
    update : Updater
        Of a single device with DRAM. For others the host updates; but of steps on a worker's own,
        its device does, if it has a DRAM.

    Raises
    ------
    InputError
        If the device is a group other than a pool, or is none that the cluster's workers can have.
    """

    device: str = GOLDEN
    target: str | None = None
    cluster: str | None = None
    update: Updater = Updater.DEVICE

    def __post_init__(self) -> None:
        check_device(self.device)
        if self.cluster is None:
            return
        if group_of(self.device) is not None:
            raise InputError(f"a worker of {self.cluster} must have one device, not {self.device}")
        if self.device != GOLDEN and not parse_address(self.cluster).is_local:
            raise InputError(
                f"a device is what each worker of {self.cluster} was started with: it must be left"
                f" out, not {self.device}"
            )

    @property
    def told(self) -> str:
        """Names it, as people are told it."""
        return self.device if self.cluster is None else told_devices(self.cluster, self.device)

    @property
    def is_single(self) -> bool:
        """Tells whether it is one device, or the golden functions in this process."""
        return self.cluster is None and group_of(self.device) is None


class OpenedTrainer:
    """A trainer, and what multiplies for it.

    Parameters
    ----------
    trainer : Trainer
    resources : ExitStack
        To be closed.
    division : Division
        With its parts.
    unit : str
        What multiplies: "devices" or "workers".
    device : CountingDevice or CountedLink, optional
        Of one device.
    crew : Crew, optional
        Of several.
    why_not_from_dram : str
        Why steps of a device with DRAM do not run from there; empty: they do, or it has none.
    """

    def __init__(
        self,
        trainer: Trainer,
        resources: ExitStack,
        division: Division,
        unit: str = "devices",
        *,
        device: CountingDevice | CountedLink | None = None,
        crew: Crew | None = None,
        why_not_from_dram: str = "",
    ) -> None:
        self.trainer, self.division = trainer, division
        self._why_not_from_dram = why_not_from_dram
        self._resources, self._unit, self._device, self._crew = resources, unit, device, crew

    @property
    def bytes_moved(self) -> int:
        """Written to devices and read from them; 0 without one.

        Of devices with DRAM the frames of their wires count, of others contents alone.
        """
        if self._crew is not None:
            return self._crew.bytes_moved
        return 0 if self._device is None else self._device.bytes_moved

    def figures(self) -> dict[str, Any]:
        """Tells how a crew shared the work, or how many steps ran from DRAM.

        Returns
        -------
        dict
            Of one device with DRAM, ``steps_from_dram``, and ``updates_on_device``: those of them
            whose weights the device updated; or, if none can run from there,
            ``why_not_from_dram``. Of a crew, ``devices`` or ``workers``: how many there are.
            ``given_again``: jobs that were done again, since a device failed, a worker ended, or
            one was late. ``steps_from_dram``: parts of steps that ran from the DRAM of a board.
            Unless models are averaged, ``gradient_bytes_per_step``: of the gradients of all parts,
            as messages. Of a cluster, ``bytes_to_workers_per_step`` and
            ``bytes_from_workers_per_step``: what the host sends and receives, without Dask's
            frames.
        """
        if isinstance(self.trainer, DramTrainer):
            return {
                "steps_from_dram": self.trainer.from_dram,
                "updates_on_device": self.trainer.updated,
            }
        if self._crew is None:
            reason = self._why_not_from_dram
            return {"why_not_from_dram": reason} if reason else {}
        found: dict[str, Any] = {
            self._unit: self._crew.size,
            "given_again": self._crew.given_again,
            "steps_from_dram": self._crew.from_dram,
        }
        if isinstance(self.trainer, ParallelTrainer):
            found["gradient_bytes_per_step"] = self.trainer.message_bytes
        if isinstance(self._crew, ClusterCrew):
            steps = max(1, self.trainer.batches) if isinstance(self.trainer, CrewTrainer) else 1
            found["bytes_to_workers_per_step"] = self._crew.sent / steps
            found["bytes_from_workers_per_step"] = self._crew.received / steps
        return found

    def close(self) -> None:
        """Closes devices, threads and connections; the trainer is of no more use."""
        self._resources.close()


def open_trainer(
    setup: WorkerSetup,
    initial: Initial,
    place: Place,
    division: Division,
    *,
    source: Range = Range.PREVIOUS,
    seed: int = 0,
) -> OpenedTrainer:
    """Opens a trainer.

    Parameters
    ----------
    setup : WorkerSetup
    initial : mapping of FloatParameters
    place : Place
    division : Division
    source : Range
        As ``Int8Arithmetic`` has it.
    seed : int
        Of the rounding of compressed gradients.

    Raises
    ------
    InputError
        If options do not fit one another.
    SlipstickError
        If a device or a cluster cannot be opened, or the hardware cannot train.
    """
    division.check()
    with ExitStack() as stack:
        if place.is_single and division == Division():
            if is_golden(place.device, place.target):
                trainer = _golden_trainer(setup, initial, source)
                return OpenedTrainer(trainer, stack.pop_all(), division)
            device = open_device(place.device, wanted_hardware(place.device, place.target))
            stack.callback(device.close)
            on_device = place.update is Updater.DEVICE
            made = make_device_trainer(setup, initial, device, source, on_device=on_device)
            return OpenedTrainer(
                made.trainer,
                stack.pop_all(),
                division,
                device=made.counted,
                why_not_from_dram=made.why_not_from_dram,
            )
        if source is not Range.PREVIOUS:
            raise InputError(
                "parts of a batch take their shifts from the step before: the range must be"
                f" {Range.PREVIOUS}, not {source}"
            )
        crew = stack.enter_context(open_crew(place, setup))
        divided = division.among(crew.size)
        trainer = _crew_trainer(setup, initial, divided, crew, seed)
        unit = "devices" if place.cluster is None else "workers"
        return OpenedTrainer(trainer, stack.pop_all(), divided, unit, crew=crew)


def _golden_trainer(setup: WorkerSetup, initial: Initial, source: Range) -> Trainer:
    arithmetic = Int8Arithmetic(setup.master_bits, setup.momentum, source)
    return Trainer(setup.network, arithmetic, initial, setup.learning)


@contextmanager
def open_crew(place: Place, setup: WorkerSetup) -> Iterator[Crew]:
    """Opens the crew of a place; a single device is a crew of one."""
    if place.cluster is not None:
        hardware = None
        if not is_golden(place.device, place.target):
            hardware = wanted_hardware(place.device, place.target)
        with open_cluster_crew(
            place.cluster, setup, device=place.device, configuration=hardware
        ) as crew:
            yield crew
        return
    name = f"{GroupKind.POOL}:{place.device}" if place.is_single else place.device
    configuration = None if place.target is None else configuration_of(place.target)
    with open_device_crew(name, setup, configuration) as crew:
        yield crew


def _crew_trainer(
    setup: WorkerSetup, initial: Initial, division: Division, crew: Crew, seed: int
) -> CrewTrainer:
    needed = setup.network, setup.arithmetic(), initial, setup.learning
    if division.local_steps > 1:
        steps = division.local_steps
        return LocalTrainer(*needed, crew=crew, steps=steps, parts=division.parts)
    return ParallelTrainer(
        *needed, crew=crew, parts=division.parts, bits=division.gradient_bits, seed=seed
    )

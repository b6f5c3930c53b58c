"""A worker's jobs: pure functions of parameters, ranges, images and labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..arithmetic import Arithmetic, StepResult
from ..int8 import Int8Arithmetic
from ..network import TrainingNetwork, initial_parameters
from ..trainer import NOTHING, Trainer, figures_of

Snapshot = Mapping[str, np.ndarray]
"""Parameters and ranges, as ``Trainer.arrays`` gives them. Nobody changes them."""


@dataclass(frozen=True)
class Job:
    """Gradients of some images, or some steps of a worker on its own.

    Parameters
    ----------
    snapshot : mapping of arrays
    images : array of int8, (images, height, width, channels)
    labels : array of int, (images,)
    shifts : tuple of int
        Of learning rates 2^-shift: so many steps, each from an equal share of the images. Empty:
        gradients are wanted.
    """

    snapshot: Snapshot
    images: np.ndarray
    labels: np.ndarray
    shifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class JobResult:
    """Holds the results of a job.

    Parameters
    ----------
    step : StepResult
        The gradients; of steps on a worker's own, figures alone.
    snapshot : mapping of arrays
        After those steps; empty if gradients were wanted.
    """

    step: StepResult
    snapshot: Snapshot = field(default_factory=dict)


def take_snapshot(trainer: Trainer) -> dict[str, np.ndarray]:
    """A trainer's parameters and ranges as they are now."""
    return {name: array.copy() for name, array in Trainer.arrays(trainer).items()}


def do_job(trainer: Trainer, job: Job) -> JobResult:
    """Does a job with a trainer that nobody else uses; what it had before does not matter."""
    if not job.shifts:
        trainer.restore(job.snapshot)
        return JobResult(trainer.gradients(job.images, job.labels))
    trainer.restore({name: array.copy() for name, array in job.snapshot.items()})
    size, figures = len(job.images) // len(job.shifts), [NOTHING]
    for number, shift in enumerate(job.shifts):
        some = slice(size * number, size * number + size)
        figures.append(trainer.step(job.images[some], job.labels[some], shift))
    return JobResult(figures_of(figures), take_snapshot(trainer))


@dataclass(frozen=True)
class WorkerSetup:
    """Holds all that a worker needs to make a trainer: it is sent to other processes once.

    Parameters
    ----------
    network : TrainingNetwork
    learning : tuple of str, or None
        Layers that learn; None: all.
    master_bits, momentum : int
        As :class:`Int8Arithmetic` has them.
    """

    network: TrainingNetwork
    learning: tuple[str, ...] | None = None
    master_bits: int = 16
    momentum: int = 0

    def arithmetic(self) -> Int8Arithmetic:
        """Golden, with the ranges of the step before."""
        return Int8Arithmetic(self.master_bits, self.momentum)

    def trainer(self, arithmetic: Arithmetic | None = None) -> Trainer:
        """A worker's trainer; the parameters come with each job."""
        initial = initial_parameters(self.network, 0)
        return Trainer(self.network, arithmetic or self.arithmetic(), initial, self.learning)

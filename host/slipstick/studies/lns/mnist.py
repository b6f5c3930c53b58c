"""Training on MNIST in five arithmetics: float32, and logarithms here or everywhere.

The experiment is that of L. Liu ("Logarithmic number system", MIT M.Eng. thesis, 2015): a network
784-128-10 with ReLU, softmax and cross-entropy, stochastic gradient descent, batches of 20.
"""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns

from ...benchmarks.suite import shared_folder
from ...data.inputs import load_inputs, load_labels
from ...errors import InputError
from .trainers import Arithmetic, Settings, make_trainer

DATA = Path("data", "mnist")
VALIDATION = 10_000
"""Images, the last of the training set."""

FOLDER = Path("build", "studies", "lns_mnist")

LAST_EPOCHS = 5
"""Epochs whose mean error is told beside the last epoch's."""


@dataclass(frozen=True)
class Images:
    """Bytes (count, inputs) and labels, for training and for validation."""

    images: np.ndarray
    labels: np.ndarray
    validation_images: np.ndarray
    validation_labels: np.ndarray

    def first(self, count: int, validation: int) -> "Images":
        """Some of them."""
        return Images(
            self.images[:count],
            self.labels[:count],
            self.validation_images[:validation],
            self.validation_labels[:validation],
        )


def load_images(folder: Path | None = None) -> Images:
    """MNIST's training set, of which the last VALIDATION images are for validation.

    Raises
    ------
    InputError
        If it is not there, or no MNIST.
    """
    folder = folder or shared_folder() / DATA
    if not folder.is_dir():
        raise InputError(
            f"MNIST must be in the folder {folder}, which is not there (SLIPSTICK_DATA)"
        )
    samples = load_inputs([folder / "train-images-idx3-ubyte.gz"], (1, 28, 28, 1))
    labels = load_labels(folder / "train-labels-idx1-ubyte.gz", len(samples))
    if len(samples) <= VALIDATION:
        raise InputError(f"{folder} must hold more than {VALIDATION} images, not {len(samples)}")
    flat = samples.x.reshape(len(samples), -1)
    return Images(
        flat[:-VALIDATION], labels[:-VALIDATION], flat[-VALIDATION:], labels[-VALIDATION:]
    )


@dataclass(frozen=True)
class Run:
    """One training: an arithmetic, a format and a seed.

    Parameters
    ----------
    arithmetic : Arithmetic
    lns : Lns
        Without effect on float32.
    seed : int
    """

    arithmetic: Arithmetic
    lns: Lns
    seed: int

    @property
    def name(self) -> str:
        """Names its checkpoint."""
        number_format = "" if self.arithmetic is Arithmetic.FLOAT32 else f"{self.lns.name}-"
        return f"{number_format}{self.arithmetic.value}-seed{self.seed}"


@dataclass
class Outcome:
    """Validation errors of a run after each epoch, in percent."""

    run: Run
    errors: list[float] = field(default_factory=list)

    @property
    def last(self) -> float:
        """After the last epoch."""
        return self.errors[-1]

    @property
    def last_mean(self) -> float:
        """Mean of the last epochs."""
        return float(np.mean(self.errors[-LAST_EPOCHS:]))


@dataclass(frozen=True, kw_only=True)
class Study:
    """Describes the trainings of a study.

    Parameters
    ----------
    lns : Lns
        The table's format.
    sweep : tuple of (Lns, int)
        Further formats, and how many seeds of each, to be compared with the table's.
    arithmetics : tuple of Arithmetic
    seeds, epochs, batch : int
    rate : float
    images, validation : int
        How many.
    """

    lns: Lns
    sweep: tuple[tuple[Lns, int], ...] = ()
    arithmetics: tuple[Arithmetic, ...]
    seeds: int
    epochs: int
    batch: int
    rate: float
    images: int
    validation: int

    def runs(self) -> list[Run]:
        """All trainings: each seed's side by side, then the other formats'."""
        runs = [
            Run(arithmetic, self.lns, seed)
            for seed in range(self.seeds)
            for arithmetic in self.arithmetics
        ]
        runs += [
            Run(arithmetic, lns, seed)
            for lns, seeds in self.sweep
            for seed in range(seeds)
            for arithmetic in self.arithmetics
            if arithmetic is not Arithmetic.FLOAT32 and lns != self.lns
        ]
        return runs

    def settings(self, seed: int) -> Settings:
        """Returns the settings of a seed's trainings."""
        return Settings(self.rate, self.batch, seed)

    @property
    def batches(self) -> int:
        """Counts the batches of all trainings."""
        return len(self.runs()) * self.epochs * (self.images // self.batch)

    def checkpoint(self, run: Run) -> Path:
        """The file of a run; studies with other settings have other folders."""
        about = f"batch{self.batch}-rate{self.rate:g}-images{self.images}-{self.validation}"
        return FOLDER / about / f"{run.name}.npz"


def train(
    study: Study,
    run: Run,
    images: Images,
    *,
    resume: bool,
    done: Callable[[int], None],
    after_epoch: Callable[[Outcome], object],
) -> Outcome:
    """Trains a network, with a checkpoint after each epoch.

    Parameters
    ----------
    resume : bool
        Goes on from the run's checkpoint, if there is one of the same study.
    done : callable
        Told of each batch.
    after_epoch : callable
        Given the outcome so far.
    """
    inputs = images.images.shape[1]
    trainer = make_trainer(run.arithmetic, study.settings(run.seed), inputs, run.lns)
    outcome, path = Outcome(run), study.checkpoint(run)
    if resume and path.is_file():
        arrays, errors = _read_checkpoint(path)
        trainer.restore(arrays)
        outcome.errors = errors[: study.epochs]
    done(len(outcome.errors) * (study.images // study.batch))
    for epoch in range(len(outcome.errors), study.epochs):
        trainer.train(epoch, images.images, images.labels, done)
        outcome.errors.append(trainer.error(images.validation_images, images.validation_labels))
        _write_checkpoint(path, trainer.arrays(), outcome.errors)
        after_epoch(outcome)
    return outcome


def train_alone(study: Study, run: Run, resume: bool) -> Outcome:
    """``train`` as a job for another process, which needs MNIST's images there."""
    images = _images().first(study.images, study.validation)
    return train(
        study, run, images, resume=resume, done=lambda count: None, after_epoch=lambda current: None
    )


@cache
def _images() -> Images:
    return load_images()


def recall(study: Study, run: Run) -> Outcome:
    """Reads the errors of a run's checkpoint; none if there is no checkpoint."""
    path = study.checkpoint(run)
    errors = _read_checkpoint(path)[1] if path.is_file() else []
    return Outcome(run, errors[: study.epochs])


def _read_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], list[float]]:
    """Arrays, and the errors after each epoch so far."""
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:
            arrays = {name: file[name] for name in file.files}
        return arrays, arrays.pop("errors").tolist()
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(f"checkpoint {path} cannot be read, remove it: {error}") from None


def _write_checkpoint(path: Path, arrays: dict[str, np.ndarray], errors: list[float]) -> None:
    """Replaces the file only when the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.npz")
    everything: dict[str, Any] = {"errors": np.array(errors), **arrays}
    np.savez(unfinished, **everything)
    unfinished.replace(path)

"""Checkpoints: all that a training needs to go on to the same bits."""

import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError
from .arithmetic import StepResult


@dataclass
class History:
    """Figures after each epoch.

    Parameters
    ----------
    loss, train_percent : list of float
        Of the epoch's batches while they were learned from: mean cross-entropy (nats), accuracy.
    test_loss, test_percent : list of float
        Of the test images after it.
    before_percent : list of float
        One number: of the test images before the first epoch.
    """

    loss: list[float] = field(default_factory=list)
    train_percent: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    test_percent: list[float] = field(default_factory=list)
    before_percent: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.loss)

    def first(self, epochs: int) -> "History":
        """The first epochs."""
        return History(**{name: values[:epochs] for name, values in vars(self).items()})


@dataclass(frozen=True)
class Within:
    """Tells how far an epoch is.

    Parameters
    ----------
    step : int
        Batches that were learned from.
    loss : float
        Sum of their images' cross-entropies.
    right, images : int
    """

    step: int = 0
    loss: float = 0.0
    right: int = 0
    images: int = 0

    def after(self, result: StepResult, step: int) -> "Within":
        """With the figures of what was learned since."""
        loss, right = self.loss + result.loss, self.right + result.right
        return Within(step, loss, right, self.images + result.images)

    @property
    def mean_loss(self) -> float:
        """Per image."""
        return self.loss / max(1, self.images)

    @property
    def percent(self) -> float:
        """Right answers."""
        return 100 * self.right / max(1, self.images)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training.

    Parameters
    ----------
    arrays : dict of arrays
        As ``Trainer.arrays`` gives them.
    history : History
        Of the epochs that are complete.
    within : Within
        The epoch after them.
    settings : dict
        Of the training, as JSON has it: a run with others cannot go on from here. Empty: not kept.
    """

    arrays: dict[str, np.ndarray]
    history: History
    within: Within = Within()
    settings: dict[str, Any] = field(default_factory=dict)


def known_history(path: Path) -> History:
    """A checkpoint's figures; none if there is no such file. InputError as ``read_checkpoint``."""
    return read_checkpoint(path).history if path.is_file() else History()


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads the checkpoint that ``write_checkpoint`` wrote.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:
            arrays = {name: file[name] for name in file.files}
        history = {name: arrays.pop(f"history/{name}").tolist() for name in vars(History())}
        within = {
            name: arrays.pop(f"within/{name}").item()
            for name in vars(Within())
            if f"within/{name}" in arrays
        }
        settings = json.loads(str(arrays.pop("settings", "{}")))
        return Checkpoint(arrays, History(**history), Within(**within), settings)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(f"checkpoint {path} cannot be read, remove it: {error}") from None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replaces the file only when the new one is complete, and on the disk.

    A process that is killed leaves the old one, and perhaps a part of the new one beside it, which
    the next checkpoint overwrites.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    everything: dict[str, Any] = dict(checkpoint.arrays)
    for name, values in vars(checkpoint.history).items():
        everything[f"history/{name}"] = np.array(values, np.float64)
    for name, value in vars(checkpoint.within).items():
        everything[f"within/{name}"] = np.array(value)
    everything["settings"] = np.array(json.dumps(checkpoint.settings))
    with open(unfinished, "wb") as file:
        np.savez(file, **everything)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def check_settings(path: Path, kept: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Holds a checkpoint's settings to those of a run.

    Raises
    ------
    InputError
        If they differ; the message names the first one that does.
    """
    for name in dict.fromkeys([*wanted, *kept]):
        if kept.get(name) != wanted.get(name):
            raise InputError(
                f"checkpoint {path} is of another training: its {name} must be"
                f" {wanted.get(name)}, not {kept.get(name)}"
            )

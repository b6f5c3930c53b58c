"""The loop: epochs of batches, a schedule of learning rates, augmentation, checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .checkpoints import (
    Checkpoint,
    History,
    Within,
    check_settings,
    read_checkpoint,
    write_checkpoint,
)
from .data import LabelledSet, Split
from .trainer import Learner


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Describes how a network is trained, whatever its arithmetic.

    Parameters
    ----------
    epochs : int
    batch : int
        Images of a step: a power of two. Images that fill no batch are left out of an epoch.
    rates : tuple of (float, int)
        From which share of the epochs on the learning rate is 2^-shift; the first from 0.
    momentum : int
        A velocity loses 2^-momentum of itself per step; 0: there is none.
    flip : bool
        Images are turned left to right by chance.
    crop : int
        Images are moved by up to so many pixels, by chance, both ways; what is not there is 0.

    Raises
    ------
    ValueError
        If the batch is no power of two, or the rates do not begin at 0 and rise.
    """

    epochs: int
    batch: int
    rates: tuple[tuple[float, int], ...]
    momentum: int = 0
    flip: bool = False
    crop: int = 0

    def __post_init__(self) -> None:
        if self.batch < 1 or self.batch & (self.batch - 1):
            raise ValueError(f"a batch must be a power of two, not {self.batch} images")
        shares = [share for share, _ in self.rates]
        if not shares or shares[0] != 0 or shares != sorted(set(shares)):
            raise ValueError(f"rates must begin at 0 and rise, not {shares}")

    def shift(self, epoch: int) -> int:
        """Returns the shift of an epoch's learning rate, 2^-shift."""
        return [shift for share, shift in self.rates if share * self.epochs <= epoch][-1]

    def batches(self, images: int) -> int:
        """Counts the batches of an epoch."""
        return images // self.batch


def order(seed: int, epoch: int, images: int, batch: int) -> np.ndarray:
    """Places of an epoch's images, (batches, batch)."""
    places = np.random.default_rng([seed, 1, epoch]).permutation(images)
    return places[: images - images % batch].reshape(-1, batch)


def augment(images: np.ndarray, recipe: Recipe, generator: np.random.Generator) -> np.ndarray:
    """Images (batch, height, width, channels) flipped and moved as a recipe says."""
    if recipe.flip:
        flipped = generator.random(len(images)) < 0.5
        images = np.where(flipped[:, None, None, None], images[:, :, ::-1], images)
    if not recipe.crop:
        return images
    batch, height, width, channels = images.shape
    border = recipe.crop
    shape = batch, height + 2 * border, width + 2 * border, channels
    padded = np.zeros(shape, images.dtype)
    padded[:, border : border + height, border : border + width] = images
    rows, columns = generator.integers(0, 2 * border + 1, (2, batch))
    moved = np.empty_like(images)
    for place, (y, x) in enumerate(zip(rows, columns, strict=True)):
        moved[place] = padded[place, y : y + height, x : x + width]
    return moved


def train_epoch(
    trainer: Learner,
    data: LabelledSet,
    recipe: Recipe,
    seed: int,
    epoch: int,
    *,
    within: Within | None = None,
    after_step: Callable[[Within], object] = lambda within: None,
) -> Within:
    """One epoch, or the rest of one.

    Parameters
    ----------
    within : Within, optional
        How far the epoch is; what is chosen by chance is chosen again as it was.
    after_step : callable
        Given how far it is then.

    Returns
    -------
    Within
        At its end.
    """
    generator = np.random.default_rng([seed, 2, epoch])
    now = within or Within()
    for step, places in enumerate(order(seed, epoch, len(data), recipe.batch)):
        batch = augment(data.images[places], recipe, generator)
        if step < now.step:
            continue
        now = now.after(trainer.step(batch, data.labels[places], recipe.shift(epoch)), step + 1)
        after_step(now)
    return now.after(trainer.flush(), now.step)


def train(
    trainer: Learner,
    data: Split,
    recipe: Recipe,
    seed: int,
    *,
    checkpoint: Path | None = None,
    checkpoint_steps: int | None = None,
    settings: dict[str, Any] | None = None,
    resume: bool = False,
    done: Callable[[int], object] = lambda count: None,
    after_step: Callable[[int, Within], object] = lambda epoch, within: None,
    after_epoch: Callable[[History], object] = lambda history: None,
) -> History:
    """Trains, and tests after each epoch.

    Parameters
    ----------
    checkpoint : path, optional
        Written after each epoch, whole or not at all: a run that was killed and goes on from it
        gives the same bits.
    checkpoint_steps : int, optional
        It is written after so many steps of an epoch, too.
    settings : dict, optional
        Kept in the checkpoint, as JSON has it; a run with others does not go on from it.
    resume : bool
        Goes on from the checkpoint if it is there.
    done : callable
        Told how many more batches are done.
    after_step : callable
        Given the epoch, from 0, and how far it is.
    after_epoch : callable
        Given the figures so far.

    Raises
    ------
    InputError
        If the checkpoint cannot be read or is of another training, or there are fewer images than a
        batch.
    """
    if len(data.train) < recipe.batch:
        raise InputError(f"a batch of {recipe.batch} needs as many images, not {len(data.train)}")
    history, within = History(), Within()
    kept = settings or {}
    if resume and checkpoint is not None and checkpoint.is_file():
        history, within = _resume(trainer, checkpoint, kept)
        if len(history) > recipe.epochs:
            return history.first(recipe.epochs)
    if not history.before_percent:
        _, right = trainer.evaluate(data.test.images, data.test.labels)
        history.before_percent.append(round(100 * right, 3))
    done(len(history) * recipe.batches(len(data.train)) + within.step)

    def write(within: Within) -> None:
        if checkpoint is not None:
            write_checkpoint(checkpoint, Checkpoint(trainer.arrays(), history, within, kept))

    def stepped(within: Within) -> None:
        done(1)
        after_step(len(history), within)
        if checkpoint_steps and within.step % checkpoint_steps == 0:
            write(within)

    for epoch in range(len(history), recipe.epochs):
        end = train_epoch(
            trainer, data.train, recipe, seed, epoch, within=within, after_step=stepped
        )
        within = Within()
        _note(history, end, *trainer.evaluate(data.test.images, data.test.labels))
        write(within)
        after_epoch(history)
    return history


def _resume(trainer: Learner, checkpoint: Path, settings: dict[str, Any]) -> tuple[History, Within]:
    """Puts a trainer where a checkpoint's was."""
    known = read_checkpoint(checkpoint)
    check_settings(checkpoint, known.settings, settings)
    try:
        trainer.restore(known.arrays)
    except (KeyError, ValueError) as error:
        raise InputError(f"checkpoint {checkpoint} is of another network: {error}") from None
    return known.history, known.within


def _note(history: History, end: Within, test_loss: float, test_right: float) -> None:
    """Figures of an epoch that is complete."""
    history.loss.append(round(end.mean_loss, 5))
    history.train_percent.append(round(end.percent, 3))
    history.test_loss.append(round(test_loss, 5))
    history.test_percent.append(round(100 * test_right, 3))

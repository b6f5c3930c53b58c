"""Trains networks in several arithmetics from the same seeds, and sums up what comes out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from ...training.arithmetic import Arithmetic
from ...training.checkpoints import History, known_history
from ...training.float32 import Float32Arithmetic
from ...training.int8 import Int8Arithmetic, Range
from ...training.lns8 import Lns8Arithmetic, Update
from ...training.loop import Recipe, train
from ...training.trainer import Trainer
from .tasks import Prepared, Task

FOLDER = Path("build", "studies", "training")


class Numbers(StrEnum):
    """Arithmetic that a network is trained in."""

    FLOAT32 = "float32"
    INT8_MASTER16 = "int8-master16"
    INT8 = "int8"
    LNS8 = "lns8"
    LNS8_ADDITIVE = "lns8-additive"


MEANINGS = {
    Numbers.FLOAT32: "float32",
    Numbers.INT8_MASTER16: "int8, master weights of 16 bits",
    Numbers.INT8: "int8 alone",
    Numbers.LNS8: "lns8, multiplicative update",
    Numbers.LNS8_ADDITIVE: "lns8, compensated additive update",
}


def make_arithmetic(numbers: Numbers, momentum: int, source: Range) -> Arithmetic:
    """An arithmetic that has no ranges yet."""
    if numbers is Numbers.FLOAT32:
        return Float32Arithmetic(momentum)
    if numbers is Numbers.LNS8:
        return Lns8Arithmetic(Update.MULTIPLIED, source, momentum=momentum)
    if numbers is Numbers.LNS8_ADDITIVE:
        return Lns8Arithmetic(Update.COMPENSATED, source, momentum=momentum)
    return Int8Arithmetic(16 if numbers is Numbers.INT8_MASTER16 else 8, momentum, source)


@dataclass(frozen=True)
class Run:
    """One training.

    Parameters
    ----------
    task : Task
    numbers : Numbers
    seed : int
        Of first weights, of the order of images, of their augmentation, and of the choice of what
        is learned from.
    """

    task: Task
    numbers: Numbers
    seed: int


@dataclass(frozen=True, kw_only=True)
class Study:
    """Describes the trainings of a study.

    Parameters
    ----------
    tasks : tuple of Task
    numbers : tuple of Numbers
    seeds : int
    epochs : int or None
        Instead of the recipes'.
    quick : bool
        Few images and epochs.
    source : Range
    """

    tasks: tuple[Task, ...]
    numbers: tuple[Numbers, ...]
    seeds: int
    epochs: int | None = None
    quick: bool = False
    source: Range = Range.PREVIOUS

    def runs(self) -> list[Run]:
        """All trainings: a task's seeds, each in every arithmetic."""
        return [
            Run(task, numbers, seed)
            for task in self.tasks
            for seed in range(self.seeds)
            for numbers in self.numbers
        ]

    def recipe(self, task: Task) -> Recipe:
        """Returns the recipe of a task's trainings."""
        recipe = task.quick if self.quick else task.recipe
        return recipe if self.epochs is None else replace(recipe, epochs=self.epochs)

    def prepared(self, run: Run) -> Prepared:
        """A run's network and data."""
        return run.task.prepare(run.seed, *(run.task.quick_images if self.quick else (None, None)))

    def checkpoint(self, run: Run) -> Path:
        """The file of a run; studies with other settings have other folders."""
        recipe = self.recipe(run.task)
        rates = "-".join(f"{share:g}x{shift}" for share, shift in recipe.rates)
        about = f"epochs{recipe.epochs}-batch{recipe.batch}-rates{rates}"
        if self.quick:
            about += "-quick"
        if self.source is not Range.PREVIOUS:
            about += f"-{self.source}"
        return FOLDER / f"{run.task.name}-{about}" / f"{run.numbers}-seed{run.seed}.npz"


@dataclass
class Outcome:
    """A run's figures so far."""

    run: Run
    history: History = field(default_factory=History)


def train_run(
    study: Study,
    run: Run,
    *,
    resume: bool,
    done: Callable[[int], object],
    after_epoch: Callable[[Outcome], object],
) -> Outcome:
    """Trains, with a checkpoint after each epoch.

    Parameters
    ----------
    resume : bool
        Goes on from the run's checkpoint, if there is one of the same settings.
    done : callable
        Told of each batch.
    after_epoch : callable
        Given the outcome so far.
    """
    prepared, recipe = study.prepared(run), study.recipe(run.task)
    arithmetic = make_arithmetic(run.numbers, recipe.momentum, study.source)
    trainer = Trainer(prepared.network, arithmetic, prepared.initial, prepared.learning)
    history = train(
        trainer,
        prepared.data,
        recipe,
        run.seed,
        checkpoint=study.checkpoint(run),
        resume=resume,
        done=done,
        after_epoch=lambda current: after_epoch(Outcome(run, current)),
    )
    return Outcome(run, history)


def recall(study: Study, run: Run) -> Outcome:
    """Reads the figures of a run's checkpoint; none if there is no checkpoint."""
    return Outcome(run, known_history(study.checkpoint(run)))


def recall_others(study: Study) -> list[Outcome]:
    """Reads checkpoints of the study's tasks in arithmetics that the study leaves out."""
    left_out = tuple(numbers for numbers in Numbers if numbers not in study.numbers)
    found = (recall(study, run) for run in replace(study, numbers=left_out).runs())
    return [outcome for outcome in found if outcome.history]


def batches(study: Study, run: Run, images: int) -> int:
    """Counts the batches of a run of so many images."""
    recipe = study.recipe(run.task)
    return recipe.epochs * recipe.batches(images)


def summarise(study: Study, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Figures of each task: every epoch of every seed, means and spread over complete seeds.

    ``spread`` is the sample standard deviation over the seeds, None of fewer than two. Points below
    float32 are of the means.
    """
    found = []
    for task in study.tasks:
        of_task = [outcome for outcome in outcomes if outcome.run.task.name == task.name]
        there = {outcome.run.numbers for outcome in of_task}
        rows = [_row(study, task, numbers, of_task) for numbers in Numbers if numbers in there]
        exact = next((row for row in rows if row["arithmetic"] == Numbers.FLOAT32), None)
        best = None if exact is None else exact["test_percent"]
        for row in rows:
            mean = row["test_percent"]
            below = None if best is None or mean is None else round(best - mean, 3)
            row["points_below_float32"] = below
        recipe = study.recipe(task)
        found.append(
            {
                "task": task.name,
                "quick": study.quick,
                "epochs": recipe.epochs,
                "batch": recipe.batch,
                "rate_shifts": [list(rate) for rate in recipe.rates],
                "momentum": recipe.momentum,
                "flip": recipe.flip,
                "crop": recipe.crop,
                "range": study.source.value,
                "allowed_points": task.limit,
                "arithmetics": rows,
            }
        )
    return found


def mean_of(values: Sequence[float]) -> float | None:
    """None of no values."""
    return round(float(np.mean(values)), 3) if values else None


def over_seeds(percents: Sequence[float]) -> dict[str, Any]:
    """Counts complete seeds, and computes their mean and spread (sample standard deviation)."""
    return {
        "complete_seeds": len(percents),
        "test_percent": mean_of(percents),
        "spread": round(float(np.std(percents, ddof=1)), 3) if len(percents) > 1 else None,
    }


def _row(study: Study, task: Task, numbers: Numbers, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    own = [outcome for outcome in outcomes if outcome.run.numbers is numbers and outcome.history]
    epochs = study.recipe(task).epochs
    before = [each.history.before_percent[0] for each in own]
    last = [each.history.test_percent[-1] for each in own if len(each.history) == epochs]
    return {
        "arithmetic": numbers.value,
        "before_percent": mean_of(before),
        **over_seeds(last),
        "seeds": {str(each.run.seed): vars(each.history) for each in own},
    }

"""The evolution on digits of 8 x 8 pixels: a dense network, and inference alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...examples.digits import CODES_PER_LEVEL, load_digits
from ...training.checkpoints import History
from ...training.data import LabelledSet, Split
from ...training.int8 import Int8Arithmetic
from ...training.network import INPUT, Kind, Layer, TrainingNetwork, initial_parameters
from ...training.parallel.candidates import evaluate_together, find_ranges
from ...training.parallel.evolution import EvolutionRecipe, EvolutionStrategy
from ...training.trainer import Trainer

_PER_LEVEL = 7
"""Codes of one of 16 levels of grey."""
_RANGES_EVERY = 10
"""Generations after which ranges are found again."""


@dataclass(frozen=True)
class EvolutionTask:
    """An evolution.

    Parameters
    ----------
    recipe : EvolutionRecipe
    generations, images : int
        ``images`` of a generation, the same for all of its candidates.
    evaluations : int
        How often the test images are looked at.
    """

    recipe: EvolutionRecipe
    generations: int
    images: int
    evaluations: int

    @property
    def inferences(self) -> int:
        """Counts the inferences of all candidates, and of finding the ranges."""
        ranges = -(-self.generations // _RANGES_EVERY)
        return self.images * (2 * self.recipe.pairs * self.generations + ranges)


def _task(pairs: int, generations: int, evaluations: int) -> EvolutionTask:
    rates = ((0, 7), (generations // 2, 8), (3 * generations // 4, 9))
    recipe = EvolutionRecipe(pairs=pairs, noise_shift=3, rates=rates)
    return EvolutionTask(recipe, generations, 256, evaluations)


WHOLE = _task(32, 240, 8)
QUICK = _task(32, 60, 2)


def dense_digits(hidden: int = 32) -> TrainingNetwork:
    """64-32-10, for pictures of 8 x 8."""
    layers = (
        Layer("flat", Kind.FLATTEN, (INPUT,)),
        Layer("hidden", Kind.CONVOLUTION, ("flat",), hidden, relu=True),
        Layer("dense", Kind.CONVOLUTION, ("hidden",), 10),
    )
    return TrainingNetwork("digits-dense", (8, 8, 1), layers)


@cache
def digits() -> Split:
    """scikit-learn's digits: 1,258 to learn from, 539 to test on; codes 0..112."""
    x, y, test_x, test_y = load_digits()
    return Split(LabelledSet(_codes(x), y), LabelledSet(_codes(test_x), test_y))


def _codes(x: np.ndarray) -> np.ndarray:
    return ((x.astype(np.int16) + 128) // CODES_PER_LEVEL * _PER_LEVEL).astype(np.int8)


def evolve(
    task: EvolutionTask, seed: int, done: Callable[[int], object] = lambda count: None
) -> History:
    """One evolution.

    Parameters
    ----------
    done : callable
        Told of each generation.
    """
    network, data, history = dense_digits(), digits(), History()
    trainer = Trainer(network, Int8Arithmetic(), initial_parameters(network, seed))
    strategy = EvolutionStrategy(trainer, task.recipe, seed)
    generator = np.random.default_rng([seed, 9])
    for generation in range(task.generations):
        chosen = data.train.at(generator.choice(len(data.train), task.images, replace=False))
        if generation % _RANGES_EVERY == 0:
            find_ranges(trainer, chosen.images)
        if not history.before_percent:
            before = trainer.evaluate(data.test.images, data.test.labels)[1]
            history.before_percent.append(round(100 * before, 3))
        strategy.tell(evaluate_together(strategy, trainer, chosen.images, chosen.labels))
        done(1)
        if (generation + 1) % (task.generations // task.evaluations) == 0:
            _note(history, trainer, chosen, data.test)
    return history


def _note(history: History, trainer: Trainer, learned: LabelledSet, test: LabelledSet) -> None:
    for some, losses, shares in (
        (learned, history.loss, history.train_percent),
        (test, history.test_loss, history.test_percent),
    ):
        loss, right = trainer.evaluate(some.images, some.labels)
        losses.append(round(loss, 5))
        shares.append(round(100 * right, 3))

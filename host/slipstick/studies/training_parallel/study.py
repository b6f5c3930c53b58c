"""Trains by every method from the same seeds, and sums up what comes out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...training.checkpoints import Checkpoint, History, known_history, write_checkpoint
from ...training.loop import Recipe, train
from ...training.network import initial_parameters
from ...training.networks import digits_cnn
from ..training.study import over_seeds
from ..training.tasks import TASKS as ALONE
from ..training.tasks import Prepared, Task
from . import evolution
from .methods import EVOLUTION, METHODS, WIRES, Method, Setting, Traffic, evolution_traffic

FOLDER = Path("build", "studies", "training-parallel")
WORKERS = 8


def _digits(seed: int, images: int | None, tested: int | None) -> Prepared:
    network, data = digits_cnn(), evolution.digits()
    split = type(data)(data.train.first(images), data.test.first(tested))
    return Prepared(network, initial_parameters(network, seed), split)


DIGITS = Task(
    "digits",
    _digits,
    Recipe(epochs=24, batch=32, rates=((0, 4), (0.5, 5), (0.75, 6))),
    Recipe(epochs=12, batch=32, rates=((0, 4), (0.75, 5))),
    (640, None),
    0.3,
)
TASKS = (DIGITS, *(task for task in ALONE if task.name in ("mnist", "cifar10")))


@dataclass(frozen=True)
class Run:
    """One training: a method by its name."""

    task: Task
    method: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Study:
    """Describes the trainings of a study.

    Parameters
    ----------
    tasks : tuple of Task
    methods : tuple of str
        Names; the evolution is of digits alone.
    seeds : int
    quick : bool
        Few images and epochs.
    workers : int
        A power of two.
    """

    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    seeds: int
    quick: bool = False
    workers: int = WORKERS

    def runs(self) -> list[Run]:
        """All trainings."""
        return [
            Run(task, method, seed)
            for task in self.tasks
            for seed in range(self.seeds)
            for method in self.methods
            if method != EVOLUTION or task.name == DIGITS.name
        ]

    def recipe(self, task: Task) -> Recipe:
        """Returns the recipe of a task's trainings."""
        return task.quick if self.quick else task.recipe

    def prepared(self, run: Run) -> Prepared:
        """A run's network and data."""
        return run.task.prepare(run.seed, *(run.task.quick_images if self.quick else (None, None)))

    @property
    def evolution(self) -> evolution.EvolutionTask:
        """The evolution's."""
        return evolution.QUICK if self.quick else evolution.WHOLE

    def checkpoint(self, run: Run) -> Path:
        """The file of a run; studies with other settings have other folders."""
        recipe = self.recipe(run.task)
        about = f"epochs{recipe.epochs}-batch{recipe.batch}-workers{self.workers}"
        if run.method == EVOLUTION:
            about = f"inferences{self.evolution.inferences}"
        about += "-quick" if self.quick else ""
        return FOLDER / f"{run.task.name}-{about}" / f"{run.method}-seed{run.seed}.npz"

    def epochs(self, run: Run) -> int:
        """Entries of a complete history."""
        return (
            self.evolution.evaluations if run.method == EVOLUTION else self.recipe(run.task).epochs
        )

    def steps(self, run: Run) -> int:
        """Counts the steps that ``done`` is told of, in all."""
        if run.method == EVOLUTION:
            return self.evolution.generations
        recipe = self.recipe(run.task)
        return recipe.epochs * recipe.batches(len(self.prepared(run).data.train))

    def setting(self, run: Run, prepared: Prepared) -> Setting:
        """A run's, for its method."""
        return Setting(
            network=prepared.network,
            initial=prepared.initial,
            workers=self.workers,
            momentum=self.recipe(run.task).momentum,
            steps=self.steps(run),
            seed=run.seed,
        )


@dataclass
class Outcome:
    """A run's figures so far."""

    run: Run
    history: History = field(default_factory=History)


def method_of(name: str) -> Method:
    """A method by its name."""
    return next(method for method in METHODS if method.name == name)


def train_run(study: Study, run: Run, *, resume: bool, done: Callable[[int], object]) -> Outcome:
    """Trains, with a checkpoint after each epoch; of an evolution, at the end.

    Parameters
    ----------
    resume : bool
        Goes on from the run's checkpoint, if there is one of the same settings.
    done : callable
        Told of each step.
    """
    path = study.checkpoint(run)
    if run.method == EVOLUTION:
        known = recall(study, run)
        if resume and known.history:
            done(study.steps(run))
            return known
        history = evolution.evolve(study.evolution, run.seed, done)
        write_checkpoint(path, Checkpoint({}, history))
        return Outcome(run, history)
    prepared = study.prepared(run)
    trainer = method_of(run.method).make(study.setting(run, prepared))
    recipe = study.recipe(run.task)
    history = train(
        trainer, prepared.data, recipe, run.seed, checkpoint=path, resume=resume, done=done
    )
    return Outcome(run, history)


def recall(study: Study, run: Run) -> Outcome:
    """Reads the figures of a run's checkpoint; none if there is no checkpoint."""
    return Outcome(run, known_history(study.checkpoint(run)))


def summarise(study: Study, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Figures of each task: a row per method.

    ``spread`` is the sample standard deviation over the seeds, None of fewer than two.
    """
    found = []
    for task in study.tasks:
        own = [outcome for outcome in outcomes if outcome.run.task.name == task.name]
        rows = [_row(study, name, own) for name in _order(own)]
        first = next((row for row in rows if row["method"] == "int32"), None)
        for row in rows:
            _compare(row, first)
        recipe = study.recipe(task)
        found.append(
            {
                "task": task.name,
                "quick": study.quick,
                "workers": study.workers,
                "epochs": recipe.epochs,
                "batch": recipe.batch,
                "methods": rows,
            }
        )
    return found


def _order(outcomes: Sequence[Outcome]) -> list[str]:
    names = [*(method.name for method in METHODS), EVOLUTION]
    there = {outcome.run.method for outcome in outcomes}
    return [name for name in names if name in there]


def _compare(row: dict[str, Any], first: Mapping[str, Any] | None) -> None:
    """Adds what a row has less than sums of 32 bits."""
    row["fewer_bytes"] = row["points_lost"] = None
    if first is None or row["method"] == EVOLUTION:
        return
    row["fewer_bytes"] = round(first["up_bytes"] / row["up_bytes"], 2)
    if row["complete_seeds"] == first["complete_seeds"] > 0:
        row["points_lost"] = round(first["test_percent"] - row["test_percent"], 3)


def _row(study: Study, name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    own = [outcome for outcome in outcomes if outcome.run.method == name]
    run = own[0].run
    last = [
        each.history.test_percent[-1] for each in own if len(each.history) == study.epochs(each.run)
    ]
    traffic, images, steps = _traffic(study, run)
    return {
        "method": name,
        **over_seeds(last),
        "up_bytes": round(traffic.up, 1),
        "down_bytes": round(traffic.down, 1),
        "image_bytes": round(traffic.images, 1),
        "inferences": study.evolution.inferences if name == EVOLUTION else None,
        "images_per_second": {
            wire: round(traffic.images_per_second(wire, images, steps), 1) for wire in WIRES
        },
        "seeds": {str(each.run.seed): vars(each.history) for each in own if each.history},
    }


def _traffic(study: Study, run: Run) -> tuple[Traffic, int, int]:
    """Traffic per step, images per step of all workers, steps between two exchanges."""
    if run.method == EVOLUTION:
        task = study.evolution
        candidates = 2 * task.recipe.pairs
        traffic = evolution_traffic(study.workers, candidates, task.images, (8, 8, 1))
        return traffic, candidates * task.images, 1
    batch, method = study.recipe(run.task).batch, method_of(run.method)
    traffic = method.traffic(study.setting(run, study.prepared(run)), batch)
    # a stale worker has a whole batch, and exchanges once while each of the others does
    steps = study.workers if method.is_stale else method.steps
    return traffic, batch, steps

"""Trains networks with rounding, from the same seeds, and compares with rounding afterwards."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...quantize import FloatNetwork
from ...training.aware import (
    AwareRecipe,
    NetworkFile,
    StepFigures,
    Tuned,
    find_format,
    fine_tune,
)
from ...training.aware.files import round_after_training
from .measure import (
    classes_of_file,
    classes_of_float,
    classes_of_tflite,
    classes_on_model,
    percents,
)
from .tasks import Images, Prepared, Task

FOLDER = Path("build", "studies", "training-aware")
FLOAT32 = "float32"
FORMATS = ("lns4", "lns5", "lns6")
CALIBRATING = 256
"""Images that the quantisers see: the first of those that are learned from."""
AGREEING = 1000
"""Test images by which the training's classes are compared with the file's."""
ON_MODEL = 32
"""Test images that the golden model of the core runs."""
_MEAN_OF = 50
"""Last steps whose mean loss is reported."""


@dataclass(frozen=True)
class Run:
    """One training: in a format by its name, or in float32."""

    task: Task
    form: str
    seed: int

    @property
    def is_float(self) -> bool:
        """Tells whether nothing is rounded."""
        return self.form == FLOAT32


@dataclass(frozen=True, kw_only=True)
class Study:
    """Describes the trainings of a study.

    Parameters
    ----------
    tasks : tuple of Task
    formats : tuple of str
    seeds : int
    steps : int or None
        Instead of the recipes'.
    images : int or None
        Test images, at most.
    quick : bool
        Few steps.
    """

    tasks: tuple[Task, ...]
    formats: tuple[str, ...] = FORMATS
    seeds: int = 1
    steps: int | None = None
    images: int | None = None
    quick: bool = False

    def runs(self) -> list[Run]:
        """All trainings; float32 first, which the others begin with."""
        return [
            Run(task, form, seed)
            for task in self.tasks
            for seed in range(self.seeds)
            for form in (FLOAT32, *self.formats)
        ]

    def recipe(self, run: Run) -> AwareRecipe:
        """A run's."""
        task = run.task
        if run.is_float:
            recipe = task.quick_float if self.quick else task.float_recipe
        else:
            recipe = task.quick if self.quick else task.recipe
        return recipe if self.steps is None else replace(recipe, steps=self.steps)

    def prepared(self, run: Run) -> Prepared:
        """A run's network and data."""
        found = run.task.prepare(run.seed)
        tests = {name: test.first(self.images) for name, test in found.tests.items()}
        return replace(found, tests=tests)

    def place(self, run: Run) -> Path:
        """A run's files without their suffix; studies with other settings have other folders."""
        recipe = self.recipe(Run(run.task, self.formats[0] if self.formats else "", 0))
        about = f"steps{recipe.steps}-batch{recipe.batch}-rate{recipe.rate:g}"
        about += "" if self.images is None else f"-images{self.images}"
        about += "-quick" if self.quick else ""
        return FOLDER / f"{run.task.name}-{about}" / f"{run.form}-seed{run.seed}"

    def figures_file(self, run: Run) -> Path:
        """A run's figures."""
        return self.place(run).with_suffix(".json")

    def float_file(self, run: Run) -> Path:
        """A run's network as a float file."""
        return self.place(run).with_suffix(".onnx")

    def logarithmic_file(self, run: Run) -> Path:
        """A run's network as its array takes it."""
        return self.place(run).with_suffix(".codes.onnx")

    def first_file(self, run: Run) -> Path:
        """Returns the path of the network that the float32 run of a seed begins with."""
        return self.place(Run(run.task, "first", run.seed)).with_suffix(".onnx")


@dataclass
class Outcome:
    """A run's figures; none of one that was not done."""

    run: Run
    figures: dict[str, Any] = field(default_factory=dict)


def recall(study: Study, run: Run) -> Outcome:
    """Reads the figures of a run; none if it is not complete."""
    path = study.figures_file(run)
    return Outcome(run, json.loads(path.read_text("utf-8")) if path.is_file() else {})


def train_run(study: Study, run: Run, *, resume: bool, done: Callable[[int], object]) -> Outcome:
    """Trains, writes the network's files, and measures them.

    Parameters
    ----------
    resume : bool
        Takes a run that is complete as it is.
    done : callable
        Told of each step.
    """
    known = recall(study, run) if resume else Outcome(run)
    if known.figures:
        done(study.recipe(run).steps)
        return known
    prepared = study.prepared(run)
    first = study.first_file(run)
    first.parent.mkdir(parents=True, exist_ok=True)
    first.write_bytes(prepared.model)
    began, losses = time.perf_counter(), deque[float](maxlen=_MEAN_OF)

    def stepped(figures: StepFigures) -> None:
        losses.append(figures.loss)
        done(1)

    tuned = fine_tune(
        NetworkFile(_begin(study, run)),
        prepared.train.x,
        prepared.train.y,
        form=None if run.is_float else run.form,
        recipe=study.recipe(run),
        seed=run.seed,
        after_step=stepped,
    )
    seconds = time.perf_counter() - began
    study.float_file(run).write_bytes(tuned.float_file())
    measured = _of_float if run.is_float else _of_format
    figures = {
        "loss": round(float(np.mean(losses)), 5) if losses else None,
        "training_seconds": round(seconds, 1),
        **measured(study, run, prepared, tuned),
    }
    study.figures_file(run).write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return Outcome(run, figures)


def _begin(study: Study, run: Run) -> Path:
    """The network that a run begins with."""
    if run.is_float:
        return study.first_file(run)
    return study.float_file(Run(run.task, FLOAT32, run.seed))


def _of_float(study: Study, run: Run, prepared: Prepared, tuned: Tuned) -> dict[str, Any]:
    """Right answers in float32, and in int8 of onnxruntime's quantiser, before and after."""
    tests, samples = prepared.tests, prepared.train.x[:CALIBRATING]
    found: dict[str, Any] = {"int8_published_percent": None}
    files = {"": study.float_file(run)}
    if not run.task.from_scratch:
        files["_before"] = study.first_file(run)
    for suffix, path in files.items():
        data = path.read_bytes()
        int8 = FloatNetwork(path).quantize(samples.astype(np.float32))
        found[f"percent{suffix}"] = percents(_each(classes_of_float, data, tests), tests)
        found[f"int8_percent{suffix}"] = percents(_each(classes_of_file, int8, tests), tests)
    if prepared.int8 is not None:
        classes = {name: classes_of_tflite(prepared.int8, test.x) for name, test in tests.items()}
        found["int8_published_percent"] = percents(classes, tests)
    return found


def _of_format(study: Study, run: Run, prepared: Prepared, tuned: Tuned) -> dict[str, Any]:
    """Right answers of the trained file, and of networks that were rounded after training."""
    tests, samples = prepared.tests, prepared.train.x[:CALIBRATING].astype(np.float32)
    form = find_format(run.form)
    data = tuned.logarithmic_file()
    study.logarithmic_file(run).write_bytes(data)
    classes = _each(classes_of_file, data, tests)
    found: dict[str, Any] = {"percent": percents(classes, tests)}
    found |= _agreement(study, run, tuned, next(iter(tests.values())), next(iter(classes.values())))
    others = {
        "rounded_tuned_percent": study.float_file(Run(run.task, FLOAT32, run.seed)),
        "quantized_again_percent": study.float_file(run),
    }
    if not run.task.from_scratch:
        others["rounded_percent"] = study.first_file(run)
    for name, path in others.items():
        made = round_after_training(path, samples, form)
        found[name] = percents(_each(classes_of_file, made, tests), tests)
    return found


def _each(
    classes: Callable[[bytes, np.ndarray], np.ndarray], data: bytes, tests: Any
) -> dict[str, np.ndarray]:
    return {name: classes(data, test.x) for name, test in tests.items()}


def _agreement(
    study: Study, run: Run, tuned: Tuned, test: Images, classes: np.ndarray
) -> dict[str, Any]:
    """Computes how often the training and the core's golden model choose as the file's kernels."""
    form = find_format(run.form)
    some = test.first(AGREEING)
    own = tuned.logits(some.x).argmax(axis=1)
    few = test.first(ON_MODEL)
    on_model = classes_on_model(study.logarithmic_file(run), form.target, few.x)
    return {
        "agreement": {
            "images": len(some),
            "training_percent": round(100 * float((own == classes[: len(some)]).mean()), 3),
            "golden_images": len(few),
            "golden_percent": round(100 * float((on_model == classes[: len(few)]).mean()), 3),
        }
    }


def summarise(study: Study, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Figures of each task: float32 and int8, and a row per format; means over seeds."""
    return [_task(study, task, outcomes) for task in study.tasks]


def _task(study: Study, task: Task, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    own = [each for each in outcomes if each.run.task.name == task.name and each.figures]
    floats = [each.figures for each in own if each.run.is_float]
    exact = {
        name: _mean([figures.get(name) for figures in floats])
        for name in (
            "percent_before",
            "percent",
            "int8_published_percent",
            "int8_percent_before",
            "int8_percent",
        )
    }
    recipe = study.recipe(Run(task, "", 0))
    return {
        "task": task.name,
        "quick": study.quick,
        "from_scratch": task.from_scratch,
        "recipe": asdict(recipe),
        "float_recipe": asdict(study.recipe(Run(task, FLOAT32, 0))),
        "calibrating": CALIBRATING,
        FLOAT32: exact | {"seeds": _seeds(own, FLOAT32)},
        "formats": list(_rows(own, exact)),
    }


def _rows(own: Sequence[Outcome], exact: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(each.run.form for each in own if not each.run.is_float):
        form = find_format(name)
        seeds = [each.figures for each in own if each.run.form == name]
        row: dict[str, Any] = {
            "format": name,
            "bits": form.bits,
            "target": form.target,
            "complete_seeds": len(seeds),
        }
        for key in (
            "rounded_percent",
            "rounded_tuned_percent",
            "percent",
            "quantized_again_percent",
        ):
            row[key] = _mean([figures.get(key) for figures in seeds])
        for key, reference in (
            ("points_below_published_int8", "int8_published_percent"),
            ("points_below_int8_before", "int8_percent_before"),
            ("points_below_int8", "int8_percent"),
        ):
            row[key] = _below(exact[reference], row["percent"])
        yield row | {"seeds": _seeds(own, name)}


def _seeds(own: Sequence[Outcome], form: str) -> dict[str, Any]:
    return {str(each.run.seed): each.figures for each in own if each.run.form == form}


def _mean(parts: Sequence[dict[str, float] | None]) -> dict[str, float] | None:
    """Computes the mean of each kind of test images; None where a seed has none."""
    there = [part for part in parts if part]
    if not there or len(there) != len(parts):
        return None
    return {name: round(float(np.mean([part[name] for part in there])), 3) for name in there[0]}


def _below(
    reference: dict[str, float] | None, own: dict[str, float] | None
) -> dict[str, float] | None:
    if reference is None or own is None:
        return None
    return {name: round(reference[name] - own[name], 3) for name in own}

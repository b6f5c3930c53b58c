"""``slipstick study training``: trainings, checkpoints, reports, and bad input."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from slipstick.cli import study_training as command
from slipstick.studies.training import study as studies
from slipstick.studies.training.study import Numbers, Outcome, Run, Study, summarise
from slipstick.studies.training.tasks import (
    NAMES,
    TASKS,
    Prepared,
    Task,
    blur_with_noise,
    invert,
    turn,
)
from slipstick.training.loop import History, Recipe
from slipstick.training.network import initial_parameters
from training_networks import small_network, small_split

RECIPE = Recipe(epochs=2, batch=32, rates=((0, 4),))


def prepare(seed: int, images: int | None, tested: int | None) -> Prepared:
    data, network = small_split(), small_network()
    split = type(data)(data.train.first(images), data.test.first(tested))
    return Prepared(network, initial_parameters(network, seed), split)


SMALL = Task("mnist", prepare, RECIPE, RECIPE, (64, 32), 0.3)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to work in, and a small task in place of MNIST."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "TASKS", (SMALL,))
    return tmp_path


def test_a_study_of_every_arithmetic(small: Path, slipstick) -> None:
    status, text, _ = slipstick(
        *("study", "training", "-t", "mnist", "--seeds", 2, "--csv", "study.csv", "--json")
    )
    assert status == 0
    (entry,) = json.loads(text)["tasks"]
    assert entry["task"] == "mnist" and entry["epochs"] == 2 and entry["range"] == "previous"
    assert [row["arithmetic"] for row in entry["arithmetics"]] == [each.value for each in Numbers]
    for row in entry["arithmetics"]:
        assert row["complete_seeds"] == 2 and row["spread"] is not None
        assert len(row["seeds"]["1"]["loss"]) == 2
        last = [row["seeds"][seed]["test_percent"][-1] for seed in "01"]
        assert row["test_percent"] == pytest.approx(np.mean(last), abs=1e-3)
    assert entry["arithmetics"][0]["points_below_float32"] == 0
    report = json.loads(Path("reports/training.json").read_text())
    assert report["tasks"] == [entry] and "date" in report
    with open("study.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(Numbers) * 2 * 2


def test_reports_keep_what_other_studies_found(small: Path, slipstick) -> None:
    """Tasks by the report, arithmetics by the checkpoints."""
    slipstick("study", "training", "-t", "mnist", "--seeds", 1, "-a", "float32")
    path = Path("reports/training.json")
    report = json.loads(path.read_text())
    report["tasks"].append({"task": "adapt-kws"})
    path.write_text(json.dumps(report))
    status, text, _ = slipstick("study", "training", "-t", "mnist", "--seeds", 1, "-a", "int8")
    assert status == 0 and "int8 alone" in text
    first, second = json.loads(path.read_text())["tasks"]
    assert [row["arithmetic"] for row in first["arithmetics"]] == ["float32", "int8"]
    assert first["arithmetics"][1]["points_below_float32"] is not None
    assert second == {"task": "adapt-kws"}


def test_resumed_and_recalled_studies_give_the_same(small: Path, slipstick) -> None:
    options = ("study", "training", "-t", "mnist", "--quick", "--json", "-a", "int8-master16")
    whole = json.loads(slipstick(*options)[1])
    assert not Path("reports").exists()
    assert json.loads(slipstick(*options, "--resume")[1]) == whole
    assert json.loads(slipstick(*options, "--report-only")[1]) == whole
    untrained = json.loads(slipstick(*options, "--report-only", "--epochs", "5")[1])
    (row,) = untrained["tasks"][0]["arithmetics"]
    assert row["complete_seeds"] == 0 and row["test_percent"] is None
    present = json.loads(slipstick(*options, "--range", "present")[1])
    assert present["tasks"][0]["range"] == "present"
    assert len(list(Path("build/studies/training").iterdir())) == 2


def test_means_are_of_complete_seeds() -> None:
    study = Study(tasks=(SMALL,), numbers=(Numbers.FLOAT32, Numbers.INT8), seeds=3)
    outcomes = [
        Outcome(Run(SMALL, numbers, seed), History([1.0] * n, [50.0] * n, [1.0] * n, ends, [9.0]))
        for numbers, seed, ends in (
            (Numbers.FLOAT32, 0, [80.0, 90.0]),
            (Numbers.FLOAT32, 1, [80.0, 92.0]),
            (Numbers.FLOAT32, 2, [99.0]),
            (Numbers.INT8, 0, [80.0, 88.0]),
        )
        for n in [len(ends)]
    ]
    exact, integer = summarise(study, outcomes)[0]["arithmetics"]
    assert (exact["test_percent"], exact["complete_seeds"]) == (91.0, 2)
    assert exact["spread"] == pytest.approx(np.sqrt(2), abs=1e-3)
    assert exact["before_percent"] == 9.0
    assert (integer["points_below_float32"], integer["spread"]) == (3.0, None)


def test_changes_of_digits() -> None:
    images = np.zeros((2, 4, 4, 1), np.int8)
    images[:, 0, 1] = 100
    generator = np.random.default_rng(0)
    assert turn(images, generator)[0, 2, 0, 0] == 100
    assert set(np.unique(invert(images, generator)).tolist()) == {27, 127}
    noisy = blur_with_noise(np.full((10, 20, 20, 1), 64, np.int8), generator)
    assert noisy.dtype == np.int8 and noisy.min() == 0 and noisy.max() == 127
    assert 40 < noisy.std() < 60


def test_every_task_has_a_name_and_arithmetics() -> None:
    assert [name for names in NAMES.values() for name in names] == [task.name for task in TASKS]
    assert set(studies.MEANINGS) == set(Numbers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "imagenet"), "--task must be one of mnist, cifar10, adapt-mnist, adapt-kws"),
        (("--seeds", "0"), "--seeds must be at least 1, not 0"),
        (("--epochs", "-1"), "--epochs must be at least 1, not -1"),
        (("--arithmetic", "int4"), "int4"),
        (("--range", "next"), "next"),
        (("--csv", "x.txt"), "x.txt"),
    ],
)
def test_bad_options(small: Path, slipstick, options: tuple[str, str], message: str) -> None:
    status, _, error = slipstick("study", "training", "--quick", *options)
    assert status == 2
    assert message in error


@pytest.mark.parametrize("task", NAMES)
def test_data_that_are_not_there(slipstick, monkeypatch, tmp_path: Path, task: str) -> None:
    from slipstick.studies.training import tasks

    for kept in (tasks._digits, tasks._pictures, tasks._imported):
        kept.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    status, _, error = slipstick("study", "training", "--quick", "-t", task)
    assert status == 2
    assert error.count("\n") == 1 and "SLIPSTICK_DATA" in error

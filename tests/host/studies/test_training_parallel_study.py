"""``slipstick study training-parallel``: every method, its bytes, resumed runs, and bad input."""

import json
from pathlib import Path

import pytest
from slipstick.cli import study_training_parallel as command
from slipstick.studies.training.tasks import Prepared, Task
from slipstick.studies.training_parallel import evolution, study
from slipstick.studies.training_parallel.methods import EVOLUTION, NAMES, Traffic
from slipstick.training.loop import Recipe
from slipstick.training.network import initial_parameters
from slipstick.training.parallel.evolution import EvolutionRecipe
from training_networks import small_network, small_pictures, small_split

RECIPE = Recipe(epochs=2, batch=32, rates=((0, 4),))


def prepare(seed: int, images: int | None, tested: int | None) -> Prepared:
    data, network = small_split(), small_network()
    split = type(data)(data.train.first(images), data.test.first(tested))
    return Prepared(network, initial_parameters(network, seed), split)


SMALL = Task("digits", prepare, RECIPE, RECIPE, (64, 32), 0.3)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to work in, and a small task in place of the digits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "TASKS", (SMALL,))

    def evolved(task: evolution.EvolutionTask, seed: int, done) -> object:
        done(task.generations)
        history = evolution.History(before_percent=[10.0])
        for _ in range(task.evaluations):
            for values in (history.loss, history.test_loss):
                values.append(1.0)
            for values in (history.train_percent, history.test_percent):
                values.append(90.0 + seed)
        return history

    monkeypatch.setattr(study.evolution, "evolve", evolved)
    return tmp_path


@pytest.mark.thorough
def test_every_method(small: Path, slipstick) -> None:
    status, text, _ = slipstick("study", "training-parallel", "--seeds", 2, "--json")
    assert status == 0
    (entry,) = json.loads(text)["tasks"]
    rows = {row["method"]: row for row in entry["methods"]}
    assert tuple(rows) == NAMES and entry["workers"] == 8
    for row in rows.values():
        assert row["complete_seeds"] == 2 and row["spread"] is not None
        assert row["up_bytes"] > 0 and row["images_per_second"]["rgmii"] > 0
    assert rows["int32"]["fewer_bytes"] == 1 and rows["int32"]["points_lost"] == 0
    fewer = [rows[name]["fewer_bytes"] for name in ("qsgd8", "qsgd4", "qsgd2", "qsgd1")]
    assert fewer == sorted(fewer) and fewer[0] > 2
    assert rows["local8"]["up_bytes"] == pytest.approx(rows["local1"]["up_bytes"] / 8, abs=0.1)
    assert rows[EVOLUTION]["test_percent"] == 90.5 and rows[EVOLUTION]["up_bytes"] == 12 * 64 / 8
    report = json.loads(Path("reports/training_parallel.json").read_text())
    assert report["tasks"] == [entry] and "date" in report


def test_resumed_and_recalled_studies_give_the_same(small: Path, slipstick) -> None:
    options = ("study", "training-parallel", "--seeds", 1, "-o", "r.json", "--json")
    methods = ("-m", "stale4", "-m", "polyak", "-m", "qsgd2", "-m", EVOLUTION)
    _, first, _ = slipstick(*options, *methods)
    _, again, _ = slipstick(*options, *methods, "--resume")
    _, recalled, _ = slipstick(*options, *methods, "--report-only")
    assert json.loads(first) == json.loads(again) == json.loads(recalled)
    path = Path("r.json")
    report = json.loads(path.read_text())
    report["tasks"].append({"task": "cifar10"})
    path.write_text(json.dumps(report))
    slipstick(*options, *methods, "--report-only")
    assert {entry["task"] for entry in json.loads(path.read_text())["tasks"]} == {
        "digits",
        "cifar10",
    }


def test_a_quick_study_prints_a_table_and_writes_no_report(small: Path, slipstick) -> None:
    status, text, _ = slipstick("study", "training-parallel", "--quick", "-m", "int32")
    assert status == 0 and "8 workers, 2 epochs" in text and "rgmii" in text
    assert not Path("reports").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-t", "no"), "--task must be one of digits, not 'no'"),
        (("-m", "no"), "--method must be one of int32, qsgd8"),
        (("--seeds", 0), "--seeds must be at least 1"),
        (("--workers", 3), "--workers must be a power of two within 1..64, not 3"),
        (("--workers", 64), "--workers must be at most 32, a batch of digits, not 64"),
    ],
)
def test_bad_input(small: Path, slipstick, options: tuple, message: str) -> None:
    status, _, errors = slipstick("study", "training-parallel", *options)
    assert status == 2 and message in " ".join(errors.split())


def test_what_a_wire_lets_through() -> None:
    """The UART's 300,000 bytes per second, and its adapter's millisecond."""
    traffic = Traffic(up=1000, down=500, images=1500)
    assert traffic.images_per_second("uart@3000000", 32) == pytest.approx(32 / 0.011)
    assert traffic.images_per_second("uart@3000000", 32, 8) == pytest.approx(256 / 0.081)


def test_an_evolution_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_pictures(300)
    images = data.images[:, :8, :, :1]
    some = type(data)(images, data.labels)
    monkeypatch.setattr(evolution, "digits", lambda: evolution.Split(some, some.first(50)))
    recipe = EvolutionRecipe(pairs=4, noise_shift=3, rates=((0, 7),))
    task = evolution.EvolutionTask(recipe, 4, 32, 2)
    told: list[int] = []
    history = evolution.evolve(task, 0, told.append)
    assert len(history) == 2 and len(history.before_percent) == 1 and sum(told) == 4
    assert task.inferences == 32 * (8 * 4 + 1)
    assert evolution.evolve(task, 0) == history != evolution.evolve(task, 1)
    assert evolution.WHOLE.inferences <= 10_000_000

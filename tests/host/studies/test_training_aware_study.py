"""``slipstick study training-aware``: a small task, resumed and recalled, and bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from slipstick.cli import study_training_aware as command
from slipstick.studies.training_aware import measure
from slipstick.studies.training_aware.tasks import Images, Prepared, Task
from slipstick.training.aware import AwareRecipe, fine_tune
from slipstick.training.aware.float_file import write_float_network
from slipstick.training.network import initial_parameters
from training_networks import small_network, small_pictures

RECIPE = AwareRecipe(steps=12, batch=32, rate=1e-2, refits=1, calibrating=32)


def pictures(count: int, seed: int = 1) -> Images:
    data = small_pictures(count, seed)
    numbers = data.images.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(2**-7)
    return Images(numbers, data.labels)


def prepare(seed: int) -> Prepared:
    network = small_network()
    model = write_float_network(network, initial_parameters(network, seed))
    return Prepared(model, pictures(128), {"small": pictures(48, 2), "few": pictures(8, 3)})


def task(name: str, *, from_scratch: bool) -> Task:
    return Task(name, prepare, RECIPE, RECIPE, RECIPE, RECIPE, from_scratch)


SMALL = task("digits", from_scratch=True), task("cifar10", from_scratch=False)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to work in, and small tasks in place of the study's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "TASKS", SMALL)
    return tmp_path


def test_tasks_and_formats(small: Path, slipstick) -> None:
    options = ("study", "training-aware", "-f", "lns5", "-f", "lns4", "--json")
    status, text, _ = slipstick(*options)
    assert status == 0
    scratch, known = json.loads(text)["tasks"]
    assert (scratch["task"], known["task"]) == ("digits", "cifar10")
    assert scratch["float32"]["percent_before"] is None
    assert set(known["float32"]["percent_before"]) == {"small", "few"}
    for entry in (scratch, known):
        rows = {row["format"]: row for row in entry["formats"]}
        assert {name: row["bits"] for name, row in rows.items()} == {"lns5": 5, "lns4": 4}
        for row in rows.values():
            assert row["complete_seeds"] == 1
            below = entry["float32"]["int8_percent"]["small"] - row["percent"]["small"]
            assert row["points_below_int8"]["small"] == pytest.approx(below, abs=0.002)
            agreement = row["seeds"]["0"]["agreement"]
            assert agreement["training_percent"] == agreement["golden_percent"] == 100
            assert agreement["images"] == 48 and agreement["golden_images"] == 32
        assert (rows["lns5"]["rounded_percent"] is None) == entry["from_scratch"]
    report = json.loads(Path("reports/training_aware.json").read_text())
    assert report["tasks"] == [scratch, known] and "date" in report
    _, again, _ = slipstick(*options, "--resume")
    _, recalled, _ = slipstick(*options, "--report-only")
    assert json.loads(text) == json.loads(again) == json.loads(recalled)
    made = {path.name for path in Path("build/studies/training-aware").glob("cifar10*/*")}
    assert {"lns4-seed0.onnx", "lns4-seed0.codes.onnx", "float32-seed0.json"} < made


def test_a_quick_study_prints_a_table_and_writes_no_report(small: Path, slipstick) -> None:
    status, text, _ = slipstick("study", "training-aware", "--quick", "-f", "lns5", "--steps", 2)
    assert status == 0 and "lns5 (5 bits)" in text and "(2 steps)" in text
    assert not Path("reports").exists()


def test_only_some_test_images(small: Path, slipstick) -> None:
    options = ("study", "training-aware", "--quick", "-f", "lns5", "--images", 16)
    _, text, _ = slipstick(*options, "--json")
    (entry,) = json.loads(text)["tasks"]
    assert entry["formats"][0]["seeds"]["0"]["agreement"]["images"] == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-t", "no"), "--task must be one of digits, cifar10, not 'no'"),
        (("-f", "lns3"), "a format to train for must be one of lns4, lns5"),
        (("--seeds", 0), "--seeds must be at least 1"),
        (("--steps", 0), "--steps must be at least 1"),
        (("--images", 0), "--images must be at least 1"),
    ],
)
def test_bad_input(small: Path, slipstick, options: tuple, message: str) -> None:
    status, _, errors = slipstick("study", "training-aware", *options)
    assert status == 2 and message in " ".join(errors.split())


def test_missing_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slipstick) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    status, _, errors = slipstick("study", "training-aware", "-t", "cifar10", "--steps", 1)
    assert status == 2 and "must be there (SLIPSTICK_DATA)" in " ".join(errors.split())


def test_classes_of_a_float_file(tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    path.write_bytes(prepare(0).model)
    some = pictures(20)
    tuned = fine_tune(path, some.x, some.y, form=None, recipe=AwareRecipe(steps=0, batch=4))
    found = measure.classes_of_float(tuned.float_file(), some.x)
    np.testing.assert_array_equal(found, tuned.logits(some.x).argmax(axis=1))

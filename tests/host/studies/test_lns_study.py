"""``slipstick study lns-mnist``: trainings, checkpoints, reports, pictures, and bad input."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slipstick.cli import study_mnist as study_command
from slipstick.errors import InputError
from slipstick.studies.lns.mnist import Images, Outcome, Run, Study, load_images
from slipstick.studies.lns.picture import draw_study
from slipstick.studies.lns.summary import summarise
from slipstick.studies.lns.trainers import Arithmetic, Settings, make_trainer
from slipstick_rtl.numbers.lns.formats import Lns

INPUTS, COUNT = 40, 200


def pictures() -> Images:
    """Noisy prototypes of ten classes, as bytes."""
    generator = np.random.default_rng(1)
    prototypes = generator.integers(0, 256, (10, INPUTS)) * (generator.random((10, INPUTS)) < 0.5)
    labels = generator.integers(0, 10, 2 * COUNT)
    noisy = prototypes[labels] + generator.integers(-20, 20, (2 * COUNT, INPUTS))
    images = np.clip(noisy, 0, 255).astype(np.uint8)
    return Images(images[:COUNT], labels[:COUNT], images[COUNT:], labels[COUNT:])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to work in, small pictures in place of MNIST, and a study of their size."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study_command, "load_images", pictures)
    small = {"seeds": 1, "epochs": 2, "images": COUNT, "validation": COUNT}
    monkeypatch.setattr(study_command, "QUICK", small)
    return tmp_path


def make_study(**changes: Any) -> Study:
    """Of two arithmetics."""
    settings: dict[str, Any] = {
        "lns": Lns(6, 6),
        "arithmetics": (Arithmetic.FLOAT32, Arithmetic.EVERYWHERE),
        "seeds": 1,
        "epochs": 3,
        "batch": 20,
        "rate": 0.05,
        "images": COUNT,
        "validation": COUNT,
    }
    return Study(**(settings | changes))


@pytest.mark.parametrize("arithmetic", list(Arithmetic))
def test_every_arithmetic_learns(arithmetic: Arithmetic) -> None:
    data = pictures()
    trainer = make_trainer(arithmetic, Settings(0.05, 20, 0), INPUTS, Lns(6, 8))
    before = trainer.error(data.validation_images, data.validation_labels)
    for epoch in range(3):
        trainer.train(epoch, data.images, data.labels, lambda count: None)
    assert before > 50
    assert trainer.error(data.validation_images, data.validation_labels) < 20


def test_products_in_a_fine_format_follow_float32() -> None:
    data = pictures()
    trainers = [
        make_trainer(arithmetic, Settings(0.05, 20, 0), INPUTS, Lns(5, 14))
        for arithmetic in (Arithmetic.FLOAT32, Arithmetic.PRODUCTS)
    ]
    for trainer in trainers:
        trainer.step(data.images[:20], data.labels[:20])
    for name, expected in trainers[0].arrays().items():
        np.testing.assert_allclose(trainers[1].arrays()[name], expected, atol=1e-4)


def test_a_training_that_was_interrupted_goes_on_as_if_it_was_not(small: Path, slipstick) -> None:
    command = ("study", "lns-mnist", "--quick", "--json", "-a", "compensated", "-a", "float32")
    whole = json.loads(slipstick(*command)[1])
    (checkpoint,) = Path("build").rglob("lns1+6+8-compensated-seed0.npz")
    with np.load(checkpoint) as file:
        finished = dict(file)
    slipstick(*command, "--epochs", 1)
    resumed = json.loads(slipstick(*command, "--resume")[1])
    assert resumed == whole
    assert json.loads(slipstick(*command, "--report-only")[1]) == whole
    untrained = json.loads(slipstick(*command, "--report-only", "--rate", "0.1")[1])
    assert untrained["runs_complete"] == 0
    assert untrained["table"][0]["seeds"] == {}
    with np.load(checkpoint) as again:
        for name, array in finished.items():
            np.testing.assert_array_equal(again[name], array)
    assert whole["complete"] and whole["runs"] == 2
    assert [len(row["seeds"]["0"]) for row in whole["table"]] == [2, 2]


def test_report_table_and_picture(small: Path, slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["slipstick", "study", "lns-mnist"])
    status, text, _ = slipstick(
        *("study", "lns-mnist", "--quick", "-a", "float32", "-a", "everywhere"),
        *("--sweep", "lns1+6+4:2", "--output", "study.json", "--plot", "study.png"),
        *("--csv", "study.csv"),
    )
    assert status == 0
    assert "LNS everywhere" in text and "3.62" in text
    report = json.loads(Path("study.json").read_text())
    assert report["complete"] and report["runs"] == 4
    assert report["command"] == "slipstick study lns-mnist"
    assert "date" in report and "numba" in report["versions"]
    with open("study.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * report["epochs"]
    errors = report["table"][0]["seeds"]["0"]
    assert [float(row["error_percent"]) for row in rows[: len(errors)]] == errors
    assert {row["format"] for row in rows} == {report["format"], "lns1+6+4"}
    assert [(entry["format"], entry["seed"]) for entry in report["sweep"]] == [
        ("lns1+6+4", 0),
        ("lns1+6+4", 1),
    ]
    assert all(entry["bits"] == 11 and entry["complete"] for entry in report["sweep"])
    coarse, usual = report["formats"]
    assert (coarse["format"], usual["format"]) == ("lns1+6+4", "lns1+6+8")
    assert coarse["complete_seeds"] == {"everywhere": 2}
    errors = [error for entry in report["sweep"] for error in entry["errors"]]
    assert coarse["last_epochs_error_percent"]["everywhere"] == pytest.approx(np.mean(errors))
    assert "lns1+6+4" in text
    assert Path("study.png").read_bytes().startswith(b"\x89PNG")


def test_means_are_of_complete_runs_and_repair_is_a_share() -> None:
    arithmetics = (Arithmetic.FLOAT32, Arithmetic.EVERYWHERE, Arithmetic.COMPENSATED)
    study = make_study(arithmetics=arithmetics, seeds=2, sweep=((Lns(6, 5), 1),))
    errors = {Arithmetic.FLOAT32: 2.0, Arithmetic.EVERYWHERE: 4.0, Arithmetic.COMPENSATED: 2.5}
    outcomes = [
        Outcome(Run(arithmetic, study.lns, seed), [9.0, error, error - seed])
        for arithmetic, error in errors.items()
        for seed in (0, 1)
    ]
    outcomes[-1].errors.pop()
    outcomes.append(Outcome(Run(Arithmetic.EVERYWHERE, Lns(6, 5), 0), [5.0]))
    figures = summarise(study, outcomes)
    assert not figures["complete"]
    assert (figures["runs_complete"], figures["runs"]) == (5, 8)
    rows = {row["arithmetic"]: row for row in figures["table"]}
    assert rows["float32"]["last_error_percent"] == 1.5
    assert rows["float32"]["complete_seeds"] == 2
    assert rows["compensated"]["complete_seeds"] == 1
    assert rows["compensated"]["seeds"]["1"] == [9.0, 2.5]
    least, most, found = (rows[a.value]["last_epochs_error_percent"] for a in arithmetics)
    assert figures["repaired"] == {"compensated": (most - found) / (most - least)}
    assert not figures["sweep"][0]["complete"]
    (entry,) = figures["formats"]
    assert entry["repaired"] == figures["repaired"]
    outcomes += [
        Outcome(Run(arithmetic, Lns(6, 5), 0), [error, error, error])
        for arithmetic, error in ((Arithmetic.EVERYWHERE, 5.5), (Arithmetic.COMPENSATED, 3.75))
    ]
    finer, coarser = summarise(study, outcomes)["formats"][::-1]
    assert (finer["format"], coarser["format"]) == ("lns1+6+6", "lns1+6+5")
    assert coarser["repaired"] == {"compensated": (5.5 - 3.75) / (5.5 - least)}


def test_mnist_that_is_not_there(slipstick, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    status, _, error = slipstick("study", "lns-mnist", "--quick")
    assert status == 2
    assert error.count("\n") == 1
    assert str(tmp_path / "data" / "mnist") in error and "SLIPSTICK_DATA" in error
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    with pytest.raises(InputError, match="train-images-idx3-ubyte.gz is not there"):
        load_images()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "lns9"), 'is named "lns1+I+F"'),
        (("--format", "lns1+9+12"), "must have 5 to 20 bits with its sign, not 22"),
        (("--sweep", "lns1+0+6"), "integer_bits must be at least 1, not 0"),
        (("--sweep", "lns1+6+6:0"), "FORMAT or FORMAT:SEEDS with 1..999 seeds, not lns1+6+6:0"),
        (("--sweep", "lns1+6+6:"), "FORMAT or FORMAT:SEEDS with 1..999 seeds, not lns1+6+6:"),
        (("--sweep", "lns1+6+6:1000"), "with 1..999 seeds, not lns1+6+6:1000"),
        (("--sweep", "lns1+6+6:2:2"), "with 1..999 seeds, not lns1+6+6:2:2"),
        (("--epochs", "0"), "--epochs must be at least 1, not 0"),
        (("--seeds", "-1"), "--seeds must be at least 1, not -1"),
        (("--batch", "0"), "--batch must be within 1..1000, not 0"),
        (("--rate", "0"), "--rate must be above 0 and at most 1, not 0"),
        (("--rate", "nan"), "--rate must be above 0 and at most 1, not nan"),
        (("--plot", "x.pdf"), "--plot must be a .png file, not x.pdf"),
        (("--arithmetic", "int8"), "int8"),
    ],
)
def test_bad_options(small: Path, slipstick, options: tuple[str, str], message: str) -> None:
    status, _, error = slipstick("study", "lns-mnist", "--quick", *options)
    assert status == 2
    assert message in error
    assert "Traceback" not in error


def test_numba_that_is_not_installed(small: Path, slipstick, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "slipstick_sim.golden.lns_compiled", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    status, _, error = slipstick("study", "lns-mnist", "--quick", "-a", "everywhere")
    assert status == 2
    assert "needs the package numba: pip install 'slipstick[sim]'" in error


def test_a_damaged_checkpoint_is_named(small: Path, slipstick) -> None:
    command = ("study", "lns-mnist", "--quick", "--epochs", 1, "-a", "float32")
    assert slipstick(*command)[0] == 0
    (checkpoint,) = Path("build").rglob("float32-seed0.npz")
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    status, _, error = slipstick(*command, "--resume")
    assert status == 2
    assert f"checkpoint {checkpoint} cannot be read" in error


def test_a_picture_needs_a_complete_training(tmp_path: Path) -> None:
    figures = summarise(make_study(), [])
    with pytest.raises(InputError, match="at least one complete training"):
        draw_study(tmp_path / "x.png", figures)

"""The study of logarithmic formats' accuracy."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from digits_network import TASK, digits, digits_network, write_digits
from shared_data import DATA, shared
from slipstick.cli import app
from slipstick.quantize import FloatNetwork
from slipstick.studies.lns import accuracy as lns_accuracy
from slipstick.studies.lns.emulation import Emulation, rounded
from slipstick.studies.lns.log_sums import Spans, sum_in_logarithms
from slipstick.studies.lns.mixed import MixedEmulation, affine
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

pytestmark = pytest.mark.borrows


def test_formats_are_all_of_an_array() -> None:
    formats = [Lns.parse(name) for name in lns_accuracy.FORMATS]
    assert [lns.bits for lns in formats] == [8] * 4 + [7] * 4 + [6] * 4 + [5] * 4
    assert all(ArrayArithmetic(lns) for lns in formats)
    assert len(set(lns_accuracy.FORMATS)) == 16


@pytest.fixture(scope="module")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder)
    return folder


@pytest.fixture
def on_digits(digits_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study on a network that needs no files of others."""
    monkeypatch.setenv("SLIPSTICK_DATA", str(digits_folder))
    monkeypatch.setattr("slipstick.cli.study_accuracy.TASKS", [TASK])


@pytest.fixture
def on_the_real_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [dataclasses.replace(task, calibrating=4) for task in lns_accuracy.TASKS]
    for task in few:
        for name in (f"models/{task.model}", f"data/{task.images}", f"data/{task.calibration}"):
            shared(name)
    monkeypatch.setenv("SLIPSTICK_DATA", str(DATA.resolve()))
    monkeypatch.setattr("slipstick.cli.study_accuracy.TASKS", few)


@pytest.mark.parametrize(
    ("fixture", "network"), [("on_digits", "digits CNN"), ("on_the_real_networks", "MNIST CNN")]
)
def test_command(
    fixture: str,
    network: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    request.getfixturevalue(fixture)
    monkeypatch.chdir(tmp_path)
    command = ["study", "lns-accuracy", "--limit", "8", "--network", network]
    with pytest.raises(SystemExit) as ended:
        app([*command, "--format", "lns1+3+4", "--format", "lns1+1+3", "--json"])
    assert not ended.value.code
    (measured,) = json.loads(capsys.readouterr().out)["networks"]
    assert (measured["network"], measured["images"]) == (network, 8)
    assert measured["float_percent"] == measured["int8_percent"] == 100
    fine, coarse = measured["formats"]
    assert (fine["format"], fine["bits"], fine["accuracy_percent"]) == ("lns1+3+4", 8, 100)
    assert coarse["points_below_int8"] == 100 - coarse["accuracy_percent"]
    # what was not measured whole is no report
    assert not (tmp_path / "reports").exists()
    with pytest.raises(SystemExit) as ended:
        app([*command, "--format", "lns1+3+4"])
    assert not ended.value.code and "lns1+3+4" in capsys.readouterr().out


@pytest.mark.parametrize("fixture", ["on_digits", "on_the_real_networks"])
def test_wide_formats_are_emulated(
    fixture: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(fixture)
    with pytest.raises(SystemExit) as ended:
        app(["study", "lns-accuracy", "--wide", "--limit", "4", "--format", "lns1+4+9", "--json"])
    assert not ended.value.code
    for measured in json.loads(capsys.readouterr().out)["networks"]:
        (entry,) = measured["formats"]
        assert entry["bits"] == 14 and entry["accuracy_percent"] == measured["float_percent"]


@pytest.mark.usefixtures("on_digits")
def test_log_sums_are_emulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.csv"
    command = ["study", "lns-accuracy", "--log-sums", "--limit", "4", "--network", "digits CNN"]
    with pytest.raises(SystemExit) as ended:
        app([*command, *"--format lns1+5+10 --format lns1+2+2 --json --csv".split(), str(table)])
    assert not ended.value.code
    (measured,) = json.loads(capsys.readouterr().out)["networks"]
    fine, coarse = measured["formats"]
    assert fine["accuracy_percent"] == 100 > coarse["accuracy_percent"]
    with open(table, newline="") as file:
        rows = {row["numbers"]: row["accuracy_percent"] for row in csv.DictReader(file)}
    assert list(rows) == ["float", "int8", "lns1+5+10", "lns1+2+2"]
    assert float(rows["lns1+2+2"]) == coarse["accuracy_percent"]


@pytest.mark.usefixtures("on_digits")
def test_linear_activations_are_emulated(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "lns-accuracy", "--linear-activations", "--limit", "16", "--json"]
    with pytest.raises(SystemExit) as ended:
        app([*command, "--network", "digits CNN"])
    assert not ended.value.code
    (measured,) = json.loads(capsys.readouterr().out)["networks"]
    assert [entry["format"] for entry in measured["formats"]] == list(lns_accuracy.MIXED_FORMATS)
    assert all(entry["accuracy_percent"] > 90 for entry in measured["formats"])


def test_finer_weights_err_less(tmp_path: Path) -> None:
    path = tmp_path / "digits.onnx"
    path.write_bytes(digits_network())
    network, images = FloatNetwork(path), digits()[2][:8]
    emulation, exact = MixedEmulation(network, images), Emulation(network, images)
    wanted = exact.run(Lns(4, 11), images)
    errors = [
        float(np.abs(emulation.run(Lns.parse(name), images) - wanted).mean())
        for name in lns_accuracy.MIXED_FORMATS
    ]
    assert errors[0] == max(errors) and errors[-1] == min(errors)
    assert 0 < errors[-1] < 0.1 * np.abs(wanted).mean() < errors[0]


def test_activations_of_int8() -> None:
    numbers = np.array([-2.0, -1.0, -0.51, 0.0, 0.3, 0.99, 7.0])
    found = affine(numbers, -1.0, 1.0)
    assert found[3] == 0
    np.testing.assert_allclose(found[1:6], numbers[1:6], atol=1 / 255)
    # 255 steps from end to end
    assert (found[-1] - found[0]) * 255 / 2 == pytest.approx(255)
    assert affine(np.array([-1.0, 0.2, 3.0]), 0.0, 2.0).tolist() == pytest.approx([0, 0.2, 2], 0.02)


@pytest.mark.parametrize(("name", "worst"), [("lns1+5+10", 0.005), ("lns1+5+6", 0.05)])
def test_sums_in_logarithms(name: str, worst: float) -> None:
    lns, generator = Lns.parse(name), np.random.default_rng(3)
    columns, weights = generator.uniform(0, 5, (40, 30)), generator.normal(0, 0.1, (6, 40))
    columns[generator.random(columns.shape) < 0.2] = 0
    bias = np.array([0.5, -0.5, 0, 1, -1, 0.1])
    exact = weights @ columns + bias[:, None]
    spans = Spans(float(columns.max()), np.abs(exact).max(axis=1))
    found = sum_in_logarithms(columns, weights, bias, spans, lns)
    # products cancel: an error is to be seen beside what is summed up
    scale = np.abs(weights) @ columns + np.abs(bias[:, None])
    error = np.abs(found - exact) / scale
    assert worst / 20 < error.max() < worst


def test_a_single_product_is_exact() -> None:
    lns = Lns(5, 6)
    grid = np.exp2(np.arange(-64, 0) / 64)
    spans = Spans(1.0, np.array([1.0]))
    found = sum_in_logarithms(grid[None], np.array([[-0.5]]), np.zeros(1), spans, lns)
    np.testing.assert_allclose(found[0], -0.5 * grid, rtol=1e-6)


def test_emulated_numbers() -> None:
    lns = Lns(4, 6)
    every = np.exp2(-np.arange(lns.largest_code) / 64) * 3
    np.testing.assert_allclose(rounded(every, 3.0, lns), every, rtol=1e-6)
    numbers = np.random.default_rng(0).uniform(-3, 3, 1000)
    error = rounded(numbers, 3.0, lns) / numbers - 1
    assert 0.004 < np.abs(error).max() <= 2 ** (1 / 128) - 1 + 1e-6
    small = 3 * 2.0 ** -np.array([15.9, 16.1])
    assert (rounded(small, 3.0, lns) > 0).tolist() == [True, False]
    assert rounded(np.array([-9.0, 0.0]), 3.0, lns).tolist() == [-3.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "lns8"), "--format must be one of lns1+4+3, lns1+3+4"),
        (("--network", "LeNet"), "--network must be one of ResNet-8, MNIST CNN, not 'LeNet'"),
        (("--wide", "--format", "lns1+3+4"), "--format must be one of lns1+4+4"),
        (("--log-sums", "--format", "lns1+9+9"), "--format must be one of lns1+1+3, lns1+2+2"),
        (("--wide", "--log-sums"), "--wide and --log-sums must not be given together"),
        (("--wide", "--linear-activations"), "--wide and --linear-activations must not be given"),
        (("--linear-activations", "--format", "lns1+3+4"), "must be one of lns1+4+0, lns1+3+1"),
        (("--csv", "rows.txt"), "--csv must be a .csv file, not rows.txt"),
        (("--limit", "0"), "--limit must be at least 1, not 0"),
        ((), "resnet8_cifar10_fp32.onnx must be there for ResNet-8 (SLIPSTICK_DATA)"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        app(["study", "lns-accuracy", *arguments])
    captured = capsys.readouterr()
    assert ended.value.code == 2 and captured.err.count("\n") == 1 and message in captured.err

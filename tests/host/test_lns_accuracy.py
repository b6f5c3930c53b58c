"""The study of logarithmic formats' accuracy."""

import dataclasses
import json
from pathlib import Path

import pytest
from shared_data import DATA
from slipstick.cli import app
from slipstick.studies import lns_accuracy
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns


def test_formats_are_all_of_an_array() -> None:
    formats = [Lns.parse(name) for name in lns_accuracy.FORMATS]
    assert [lns.bits for lns in formats] == [8] * 4 + [7] * 4 + [6] * 4 + [5] * 4
    assert all(ArrayArithmetic(lns) for lns in formats)
    assert len(set(lns_accuracy.FORMATS)) == 16


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [dataclasses.replace(task, calibrating=4) for task in lns_accuracy.TASKS]
    monkeypatch.setenv("SLIPSTICK_DATA", str(DATA.resolve()))
    monkeypatch.setattr("slipstick.commands.study_accuracy.TASKS", few)
    monkeypatch.chdir(tmp_path)
    command = ["study", "lns-accuracy", "--limit", "8", "--network", "MNIST CNN"]
    with pytest.raises(SystemExit) as ended:
        app([*command, "--format", "lns1+3+4", "--format", "lns1+1+3", "--json"])
    assert not ended.value.code
    (measured,) = json.loads(capsys.readouterr().out)["networks"]
    assert (measured["network"], measured["images"]) == ("MNIST CNN", 8)
    assert measured["float_percent"] == measured["int8_percent"] == 100
    fine, coarse = measured["formats"]
    assert (fine["format"], fine["bits"], fine["accuracy_percent"]) == ("lns1+3+4", 8, 100)
    assert coarse["points_below_int8"] == 100 - coarse["accuracy_percent"]
    # what was not measured whole is no report
    assert not (tmp_path / "reports").exists()
    with pytest.raises(SystemExit) as ended:
        app([*command, "--format", "lns1+3+4"])
    assert not ended.value.code and "lns1+3+4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "lns8"), "--format must be one of lns1+4+3, lns1+3+4"),
        (("--network", "LeNet"), "--network must be one of ResNet-8, MNIST CNN, not 'LeNet'"),
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

"""The benchmark of the golden model beside the reference runtimes."""

import json
from pathlib import Path

import pytest
from shared_data import DATA, shared
from slipstick.benchmarks import speed as speed_benchmark
from slipstick.benchmarks.speed import Case


def test_what_is_missing_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert speed_benchmark.speed_benchmark() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(speed_benchmark.CASES)
    assert all(line.startswith("skipped: ") for line in lines)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.borrows
def test_networks_of_both_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (
        Case("ad01_int8.tflite", None, 3),
        Case("resnet8_cifar10_int8_qoperator_perchannel.onnx", speed_benchmark.CIFAR, 3),
    )
    for case in cases:
        shared(f"models/{case.model}")
    monkeypatch.setenv("SLIPSTICK_DATA", str(DATA.resolve()))
    monkeypatch.setattr(speed_benchmark, "CASES", cases)
    monkeypatch.chdir(tmp_path)
    assert speed_benchmark.speed_benchmark() == 0
    report = json.loads((tmp_path / "reports/bench_speed.json").read_text())
    assert [entry["runtime"] for entry in report["networks"]] == ["tflm", "onnxruntime"]
    for entry in report["networks"]:
        assert entry["images"] == 3 and entry["outputs_that_differ"] == 0
        assert entry["golden_images_per_second"] > 0 and entry["runtime_images_per_second"] > 0

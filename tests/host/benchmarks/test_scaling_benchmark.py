"""The benchmark of array sizes, on a small network."""

import json
import shutil
from pathlib import Path

import pytest
from slipstick.benchmarks import scaling as scaling_benchmark
from slipstick.examples.digits import MODEL


def test_what_is_missing_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert scaling_benchmark.scaling_benchmark() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(scaling_benchmark.NETWORKS)
    assert all(line.startswith("skipped: ") for line in lines)
    assert not list(tmp_path.rglob("*.json"))


def test_cycles_are_compared_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scaling_benchmark, "TARGETS", ("1x4x4", "1x4x4"))
    monkeypatch.setattr(scaling_benchmark, "NETWORKS", ("digits",))
    (tmp_path / "models").mkdir()
    shutil.copy(MODEL, tmp_path / "models" / "digits.tflite")
    assert scaling_benchmark.scaling_benchmark() == 0
    assert "digits, RTL simulated" in capsys.readouterr().out
    report = json.loads((tmp_path / "reports/bench_scaling.json").read_text())
    (network,) = report["networks"]
    first, second = network["sizes"]
    assert first == second
    assert first["speed_up"] == first["of_proportional"] == 1.0
    assert first["share_of_peak"] > 0.8 and first["macs_per_cycle"] == 16
    assert (tmp_path / "reports/roofline_digits.png").is_file()
    assert "simulation" not in report

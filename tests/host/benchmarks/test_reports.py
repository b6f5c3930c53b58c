"""Reports of builds and benchmarks, and the demonstration's choice of images."""

import json
from pathlib import Path

import numpy as np
import pytest
from slipstick import reports
from slipstick.benchmarks import suite as benchmarks
from slipstick.cli.targets import targets_command
from slipstick.examples import demo
from slipstick.targets import TARGETS

FINGERPRINT = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reports, "folders", lambda: [tmp_path / "reports"])
    (tmp_path / "reports").mkdir()
    return tmp_path / "reports"


def test_the_last_build_of_the_same_hardware_counts(folder: Path) -> None:
    assert reports.last_build(FINGERPRINT) is None
    for name, fields in {
        "old": {"fingerprint": FINGERPRINT, "fmax_mhz": 90.0, "date": "2026-01-01"},
        "new": {"fingerprint": FINGERPRINT, "fmax_mhz": 110.5, "date": "2026-02-01"},
        "other": {"fingerprint": "f" * 16, "fmax_mhz": 200.0, "date": "2026-03-01"},
        "failed": {"fingerprint": FINGERPRINT, "fmax_mhz": None, "date": "2026-03-01"},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(fields))
    (folder / "list.json").write_text("[1]")
    (folder / "damaged.json").write_text("{")
    found = reports.last_build(FINGERPRINT)
    assert found is not None and found["fmax_mhz"] == 110.5
    assert reports.last_build(FINGERPRINT, "ulx3s-85f") is None


def test_targets_show_the_last_build_of_each_board(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = {"fmax_mhz": 87.125, "meets_clock": False, "lut": 14117, "ff": 14226, "dsp": 24}
    for name, fields in {
        "ulx3s-25f": {"fingerprint": TARGETS["ulx3s-25f"].configuration.fingerprint, **built},
        "ulx3s-85f": {"fingerprint": FINGERPRINT, "fmax_mhz": 123.4},
    }.items():
        (folder / f"build-{name}.json").write_text(json.dumps({"target": name, **fields}))
    targets_command()
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "ulx3s-25f" in line and " of " in line]
    assert "87.1 MISSED" in row and "14,117 of 24,288" in row and "24 of 28" in row
    # the same hardware on another board, and other hardware on the same board, were not built
    assert sum("87.1" in line for line in lines) == 1
    assert not any("123.4" in line for line in lines)

    targets_command(json=True)
    entries = json.loads(capsys.readouterr().out)["targets"]
    (entry,) = [entry for entry in entries if entry["target"] == "ulx3s-25f"]
    assert entry["last_build"]["lut"] == 14117 and entry["chip"]["lut"] == 24288
    (stale,) = [entry for entry in entries if entry["target"] == "ulx3s-85f"]
    assert stale["last_build"] is None


def test_targets_show_what_was_measured_over_wires(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    today = TARGETS["icebreaker"].configuration.fingerprint
    case = {"target": "icebreaker", "network": "a", "wire": "uart@3000000"}
    rates = {"inferences_per_second": 15.53, "core_inferences_per_second": 19.54}
    cases = {
        "a": {**case, **rates, "fingerprint": today},
        "old": {**case, **rates, "fingerprint": FINGERPRINT, "wire": "spi"},
        "odd": "no case",
        "odder": {**case, "fingerprint": today, "wire": "usb"},
    }
    (folder / "end_to_end.json").write_text(json.dumps({"cases": cases}))
    targets_command()
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "uart@3000000" in line]
    assert "15.5" in row and "19.5" in row
    targets_command(json=True)
    entries = json.loads(capsys.readouterr().out)["targets"]
    measured = {entry["target"]: entry["end_to_end"] for entry in entries}
    assert [each["wire"] for each in measured["icebreaker"]] == ["uart@3000000"]
    assert not measured["ulx3s-85f"]


def test_reports_name_command_date_and_versions(folder: Path) -> None:
    path = reports.write("figures", "python -m this", {"cycles": 5})
    report = json.loads(path.read_text())
    assert report["command"] == "python -m this" and report["cycles"] == 5
    assert report["date"].startswith("20") and "numpy" in report["versions"]


def test_benchmarks_skip_without_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(folder))
    assert benchmarks.benchmarks() == 0
    assert "skipped" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_the_demonstration_shows_every_wrong_image(capsys: pytest.CaptureFixture[str]) -> None:
    truths = np.arange(100) % 10
    guesses = truths.copy()
    guesses[[3, 97]] = 11
    shown = demo.chosen(guesses, truths)
    assert len(shown) == demo.SHOWN and {3, 97} <= set(shown.tolist())
    assert (np.diff(shown) > 0).all()
    demo.print_guesses(shown, guesses, truths)
    assert capsys.readouterr().out.count("wrong") == 3

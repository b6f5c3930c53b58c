"""``python -m slipstick.benchmarks.server``: its report, on a small network for a short time."""

import json
from pathlib import Path

import pytest
from slipstick.benchmarks.server import __main__ as benchmark


@pytest.mark.thorough
def test_the_report(
    tmp_path: Path,
    digits_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ["--requests", "20", "--seconds", "0.5", "--malformed", "60", "--soak", "0.02"]
    arguments = [str(digits_path), *few, "--boards", "2", "--slower", "100"]
    monkeypatch.setattr("sys.argv", ["benchmark", *arguments])
    assert benchmark.main() == 0
    assert "the server's own part" in capsys.readouterr().out
    report = json.loads((tmp_path / "reports" / "server.json").read_text())
    assert report["command"] == " ".join([benchmark.COMMAND, *arguments])
    latency = report["latency"]
    assert 0 < report["device_ms"] < latency["p50_ms"] <= latency["p99_ms"]
    assert latency["added_p50_ms"] == pytest.approx(latency["p50_ms"] - report["device_ms"])
    alone = latency["session"]["p50_ms"]
    assert alone > report["device_ms"]
    assert latency["added_to_session_p50_ms"] == pytest.approx(latency["p50_ms"] - alone)
    throughput = report["throughput"]
    assert throughput["boards"] == 2 and len(throughput["cases"]) == 2
    assert all(case["images_per_second"] > 0 for case in throughput["cases"])
    assert report["malformed"]["requests"] == 60 and report["malformed"]["wrong"] == []
    assert report["soak"]["requests"] > 0 and report["soak"]["wrong"] == []
    # what is not measured again is kept
    monkeypatch.setattr(
        "sys.argv", ["benchmark", str(digits_path), *few[:4], "--malformed", "0", *arguments[-4:]]
    )
    assert benchmark.main() == 0
    later = json.loads((tmp_path / "reports" / "server.json").read_text())
    kept = {"command": report["command"], "date": report["date"]}
    assert later["soak"] == kept | report["soak"]
    assert later["malformed"] == kept | report["malformed"]
    assert later["latency"] != report["latency"]

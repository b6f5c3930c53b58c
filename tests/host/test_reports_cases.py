"""Reports of cases that are measured one by one."""

import json
from pathlib import Path

import pytest
from slipstick import reports


def test_a_report_keeps_its_other_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reports" / "some.json"
    path.parent.mkdir()
    path.write_text('{"date": "yesterday", "cases": {"one": {"batch": 1}, "two": {"batch": 2}}}')
    assert reports.write_cases("some", "some command", {"two": {"batch": 4}}) == Path(
        "reports/some.json"
    )
    report = json.loads(path.read_text())
    cases = report["cases"]
    assert report["command"] == "some command"
    assert cases["one"] == {"date": "yesterday", "batch": 1}
    assert cases["two"]["batch"] == 4 and cases["two"]["date"] == report["date"] != "yesterday"


def test_a_report_begins_with_its_first_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = reports.write_cases("new", "some command", {"one": {"batch": 1}})
    assert json.loads(path.read_text())["cases"]["one"]["batch"] == 1

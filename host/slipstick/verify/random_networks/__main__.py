"""Random networks on every kind of hardware: ``python -m slipstick.verify.random_networks``.

Takes some hours, and writes ``reports/random_networks.json`` after every few hundred networks. A
run that is ended goes on where it was, as long as the sources are the same. Ends with 1 if a
network was wrong.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import console, reports
from ...errors import InputError
from ...program.cache import sources_digest
from ...targets import find_target
from .campaign import Campaign, Tally, figures, run

COMMAND = "python -m slipstick.verify.random_networks"
TARGETS = {
    "sim-medium": 20_000,
    "sim-small": 4_000,
    "ulx3s-85f": 10_000,
    "ulx3s-12f": 4_000,
    "icebreaker": 4_000,
    "tang-nano-9k": 4_000,
    "asic-4x4": 4_000,
    "2x8x4": 4_000,
    "sim-lns6": 4_000,
}
"""Networks that each target runs."""

STEP = 500
"""Networks between two writings of the report."""

RTL = {"sim-medium": 40, "sim-small": 40, "asic-4x4": 40}
"""The first networks that run on the compiled RTL as well, where that is compiled quickly."""

Figures = dict[str, Any]


def main(
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    share: Annotated[float, typer.Option(help="Of the networks of each target.")] = 1.0,
    target: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times.")
    ] = None,
    report: Annotated[Path, typer.Option(help="The file.")] = Path("reports/random_networks.json"),
) -> None:
    """Check random networks on all targets, and write the report."""
    chosen = {name: TARGETS[name] for name in _known(target)}
    found = _read(report)
    for name, networks in chosen.items():
        wanted = max(1, int(networks * share))
        while (done := found.get(name, {}).get("networks", 0)) < wanted:
            _advance(found, name, min(STEP, wanted - done), jobs)
            _write(report, found)
            state = found[name]
            console.print_line(
                f"{name}: {state['networks']:,} networks, {state['wrong']} wrong,"
                f" {sum(state['refused'].values())} refused, {state['seconds']:.0f} s"
            )
    if any(state["wrong"] for state in found.values()):
        raise typer.Exit(1)


def _known(names: list[str] | None) -> list[str]:
    for name in names or ():
        if name not in TARGETS:
            raise InputError(f"--target must be one of {', '.join(TARGETS)}, not {name!r}")
    return names or list(TARGETS)


def _read(report: Path) -> dict[str, Figures]:
    """The figures so far, if they are of these sources."""
    if not report.is_file():
        return {}
    whole = json.loads(report.read_text("utf-8"))
    return whole["targets"] if whole.get("sources") == sources_digest() else {}


def _write(report: Path, found: dict[str, Figures]) -> None:
    total = {
        "networks": sum(state["networks"] for state in found.values()),
        "total_mismatches": sum(state["total_mismatches"] for state in found.values()),
        "wrong": sum(state["wrong"] for state in found.values()),
    }
    reports.write_file(report, COMMAND, {"sources": sources_digest(), **total, "targets": found})


def _advance(found: dict[str, Figures], name: str, networks: int, jobs: int) -> None:
    """Adds some more networks to a target's figures."""
    configuration = find_target(name).configuration
    state = found.get(name)
    first = 0 if state is None else state["networks"]
    begin = time.monotonic()
    campaign = Campaign(
        networks=networks,
        seed=first,
        configuration=configuration,
        rtl=max(0, min(networks, RTL.get(name, 0) - first)),
        processes=jobs,
    )
    with console.progress(name, networks) as advance:
        tally = run(campaign, advance)
    shown = _shown(tally, configuration) | {
        "fingerprint": configuration.fingerprint,
        "seconds": time.monotonic() - begin,
    }
    found[name] = shown if state is None else _joined(state, shown)


def _shown(tally: Tally, configuration: Any) -> Figures:
    return figures(tally, configuration) | {
        "wrong": len(tally.findings),
        "wrong_seeds": [outcome.seed for outcome in tally.findings],
        "first_seed": 0,
    }


def _joined(before: Figures, more: Figures) -> Figures:
    """The sums of two tallies' figures."""
    joined = dict(before)
    for name, value in more.items():
        if name in ("refused", "coverage", "rtl"):
            joined[name] = dict(Counter(before[name]) + Counter(value))
            joined[name] = {key: joined[name].get(key, 0) for key in {**before[name], **value}}
        elif name not in ("fingerprint", "first_seed"):
            joined[name] = before[name] + value
    return joined


if __name__ == "__main__":
    typer.run(main)

"""Measures pools of boards: ``python -m slipstick.benchmarks.cluster``; ``--help`` tells more."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import console, reports
from ...examples.digits import MODEL
from ...failures import command_status
from ...loading import load_program
from ...targets import find_target
from ..suite import shared_folder
from .efficiency import pool_efficiency
from .failures import Failure, failing_pool
from .workers import worker_efficiency

COMMAND = "python -m slipstick.benchmarks.cluster"
REPORT = "cluster"
_NETWORK = "ic01_resnet8_int8.tflite"
_SLOWER = 10.0
_LEAST_EFFICIENCY = 0.9
_JUDGED = 8


class Part(StrEnum):
    """Parts of the benchmark, by what they measure."""

    POOL = "pool"
    WORKERS = "workers"
    FAILURES = "failures"


def cluster_benchmark(
    boards: Annotated[
        list[int] | None, typer.Option(help="Emulated boards: 1, 2, 4, 8, 16, 32 and 64.")
    ] = None,
    images: Annotated[int, typer.Option(help="Images for each kind of failure.")] = 10_000,
    target: Annotated[str, typer.Option(help="The emulated hardware.")] = "ulx3s-85f",
    wire: Annotated[str, typer.Option(help="Its wire.")] = "rmii",
    only: Annotated[
        Part | None, typer.Option(help="This part; the report keeps the others' figures.")
    ] = None,
) -> int:
    """Measures, prints the figures and writes the report; 1 if a figure was missed."""
    network = shared_folder() / "models" / _NETWORK
    network = network if network.exists() else MODEL
    program = load_program(network, find_target(target).configuration)
    figures = {} if only is None else _last_figures()
    if only in (None, Part.POOL):
        figures[Part.POOL] = [
            _show_efficiency("pool", pool_efficiency(program, count, wire, slower))
            for slower in (_SLOWER, 1.0)
            for count in boards or (1, 2, 4, 8, 16, 32, 64)
        ]
    if only in (None, Part.WORKERS):
        figures[Part.WORKERS] = [
            _show_efficiency("workers", worker_efficiency(network, target, count, wire, slower))
            for slower in (_SLOWER, 1.0)
            for count in boards or (1, 2, 4, 8)
        ]
    if only in (None, Part.FAILURES):
        figures[Part.FAILURES] = _failures(images)
    reports.write(REPORT, COMMAND, figures)
    measured = [*figures.get(Part.POOL, []), *figures.get(Part.WORKERS, [])]
    poor = [
        case
        for case in measured
        if case["slower"] == _SLOWER
        and case["boards"] <= _JUDGED
        and case["efficiency"] < _LEAST_EFFICIENCY
    ]
    failed = figures.get(Part.FAILURES, [])
    bad = [case for case in failed if case["lost"] or case["doubled"] or case["wrong"]]
    same = all(case["equal"] for case in measured)
    return 0 if same and not poor and not bad else 1


def _last_figures() -> dict[str, Any]:
    """Those of the report that is there."""
    path = Path(reports.FOLDER) / f"{REPORT}.json"
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {part.value: found[part] for part in Part if part in found}


def _failures(images: int) -> list[dict[str, Any]]:
    digits = load_program(MODEL, find_target("sim-medium").configuration)
    failures = []
    for failure in Failure:
        with console.step(f"{images} images while boards are {failure}"):
            failures.append(failing_pool(digits, failure, images))
        _show_failure(failures[-1])
    return failures


def _show_efficiency(kind: str, case: dict[str, Any]) -> dict[str, Any]:
    console.print_line(
        f"{kind}, {case['slower']:g} times slower: {case['network']} on {case['boards']} boards of"
        f" {case['board_images_per_second']:.0f} images per second:"
        f" {case['images_per_second']:.0f} per second, efficiency {case['efficiency']:.3f};"
        f" equal to the golden model: {'yes' if case['equal'] else 'no'}"
    )
    return case


def _show_failure(case: dict[str, Any]) -> None:
    console.print_line(
        f"{case['images']} images, boards {case['failure']} {case['failures']} times:"
        f" {case['lost']} lost, {case['doubled']} doubled, {case['wrong']} wrong,"
        f" {case['retried']} computed again, {case['seconds']:.0f} s"
    )


def main() -> int:
    """The command line."""
    return command_status(cluster_benchmark)


if __name__ == "__main__":
    sys.exit(main())

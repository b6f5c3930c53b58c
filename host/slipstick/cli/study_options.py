"""Options and figures that studies of trainings have in common."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from .. import console, reports
from ..errors import InputError

Run = TypeVar("Run")
Outcome = TypeVar("Outcome")

Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoints in build/studies.")
]
ReportOnly = Annotated[
    bool, typer.Option("--report-only", help="Train nothing: report what checkpoints have.")
]


def two_places(value: float | None) -> str | None:
    """A figure as tables of studies show it; None stays None."""
    return None if value is None else f"{value:.2f}"


def with_other_tasks(path: Path, tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A report's tasks that a study does not have, and behind them the study's own.

    Parameters
    ----------
    path : path
        Of the report; one that cannot be read has no tasks.
    tasks : sequence of dict
        Each with its name as ``task``.
    """
    names = {entry["task"] for entry in tasks}
    try:
        known = json.loads(path.read_text("utf-8"))["tasks"]
        others = [entry for entry in known if entry["task"] not in names]
    except (OSError, ValueError, KeyError, TypeError):
        others = []
    return [*others, *tasks]


def write_tasks(path: Path | None, tasks: Sequence[dict[str, Any]]) -> None:
    """Writes a report of a study's tasks, which keeps the others that it has; None: no report."""
    if path is not None:
        kept = {"tasks": with_other_tasks(path, tasks)}
        reports.write_file(path, reports.command_line(), kept)


def check_names(option: str, names: Iterable[str] | None, allowed: Collection[str]) -> None:
    """InputError names the option, the value and what is allowed."""
    for name in names or ():
        if name not in allowed:
            raise InputError(f"{option} must be one of {', '.join(allowed)}, not {name!r}")


def run_study(
    runs: Sequence[Run],
    *,
    report_only: bool,
    recall: Callable[[Run], Outcome],
    steps: Callable[[Run], int],
    train: Callable[[Run, Callable[[int], object], Callable[[Outcome], object]], Outcome],
    write: Callable[[Sequence[Outcome]], dict[str, Any]],
) -> dict[str, Any]:
    """Does all trainings of a study, or takes what is there of them; returns the figures.

    Parameters
    ----------
    runs : sequence of Run
    report_only : bool
        Trains nothing.
    recall : callable
        What is there of a run.
    steps : callable
        How many steps a run has.
    train : callable
        Trains: the run, who is told of steps, and who is told of what there is before its end.
    write : callable
        Given all outcomes so far, writes the report, and returns the figures: after each training.
    """
    if report_only or not runs:
        return write([recall(run) for run in runs])
    outcomes, figures = list[Outcome](), dict[str, Any]()
    with console.progress("training", sum(map(steps, runs))) as done:
        for run in runs:
            outcome = train(run, done, lambda current: write([*outcomes, current]))
            outcomes.append(outcome)
            figures = write(outcomes)
    return figures

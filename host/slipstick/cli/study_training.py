"""``slipstick study training``: trainings in float32, integers and logarithms."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from ..studies.training.study import (
    MEANINGS,
    Numbers,
    Outcome,
    Study,
    batches,
    recall,
    recall_others,
    summarise,
    train_run,
)
from ..studies.training.tasks import NAMES, TASKS
from ..training.int8 import Range
from .csv_output import CsvFile, check_csv, write_csv
from .options import Json, check_least
from .study_options import ReportOnly, Resume, check_names, run_study, two_places, with_other_tasks

DEFAULT_OUTPUT = Path(reports.FOLDER) / "training.json"
USUAL_SEEDS = 3


def training_command(
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", "-t", help=f"One of {', '.join(NAMES)}; by default all.", show_default=False
        ),
    ] = None,
    arithmetic: Annotated[
        list[Numbers] | None,
        typer.Option("--arithmetic", "-a", help="By default all.", show_default=False),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="By default 3, or 1 if quick.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Instead of the tasks' own.")] = None,
    source: Annotated[
        Range, typer.Option("--range", help="Whose largest magnitude chooses the shifts.")
    ] = Range.PREVIOUS,
    quick: Annotated[
        bool, typer.Option("--quick", help="1 seed, few images and epochs: a minute or two.")
    ] = False,
    resume: Resume = False,
    report_only: ReportOnly = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"The report; {DEFAULT_OUTPUT} unless quick."),
    ] = None,
    csv: CsvFile = None,
    json: Json = False,
) -> None:
    """Train in float32 and in integers, from scratch and from known weights, and compare."""
    study = _study(task, arithmetic, seeds, epochs, source, quick)
    check_csv(csv)
    path = output or (None if quick else DEFAULT_OUTPUT)

    def write(outcomes: Sequence[Outcome]) -> dict[str, Any]:
        figures = {"tasks": summarise(study, outcomes)}
        if path is not None:
            whole = summarise(study, [*outcomes, *recall_others(study)])
            kept = {"tasks": _with_others(path, whole)}
            reports.write_file(path, reports.command_line(), kept)
        return figures

    figures = run_study(
        study.runs(),
        report_only=report_only,
        recall=lambda run: recall(study, run),
        steps=lambda run: batches(study, run, len(study.prepared(run).data.train)),
        train=lambda run, done, tell: train_run(
            study, run, resume=resume, done=done, after_epoch=tell
        ),
        write=write,
    )
    write_csv(csv, _rows(figures))
    if json:
        console.print_json(figures)
    else:
        _show(figures)


def _study(
    names: list[str] | None,
    arithmetics: list[Numbers] | None,
    seeds: int | None,
    epochs: int | None,
    source: Range,
    quick: bool,
) -> Study:
    """The study that the options ask for."""
    check_least("--seeds", seeds, 1)
    check_least("--epochs", epochs, 1)
    check_names("--task", names, NAMES)
    wanted = {part for name in names or NAMES for part in NAMES[name]}
    return Study(
        tasks=tuple(task for task in TASKS if task.name in wanted),
        numbers=tuple(dict.fromkeys(arithmetics or Numbers)),
        seeds=seeds or (1 if quick else USUAL_SEEDS),
        epochs=epochs,
        quick=quick,
        source=source,
    )


def _with_others(path: Path, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``with_other_tasks``, in the order of the tasks."""
    places = {task.name: place for place, task in enumerate(TASKS)}
    whole = with_other_tasks(path, tasks)
    return sorted(whole, key=lambda entry: places.get(entry["task"], len(places)))


def _rows(figures: dict[str, Any]) -> list[dict[str, object]]:
    """The figures as ``--csv`` has them: an epoch of a training each."""
    return [
        {
            "task": entry["task"],
            "arithmetic": row["arithmetic"],
            "seed": int(seed),
            "epoch": epoch + 1,
            **{name: values[epoch] for name, values in history.items() if name != "before_percent"},
        }
        for entry in figures["tasks"]
        for row in entry["arithmetics"]
        for seed, history in row["seeds"].items()
        for epoch in range(len(history["loss"]))
    ]


def _show(figures: dict[str, Any]) -> None:
    for entry in figures["tasks"]:
        rows = [
            [
                MEANINGS[Numbers(row["arithmetic"])],
                two_places(row["before_percent"]),
                two_places(row["test_percent"]),
                two_places(row["spread"]),
                two_places(row["points_below_float32"]),
                row["complete_seeds"],
            ]
            for row in entry["arithmetics"]
        ]
        columns = {"arithmetic": "text", "before": "right", "mean": "right", "spread": "right"}
        console.print_table(
            f"{entry['task']}: right answers in % after {entry['epochs']} epochs",
            columns | {"below float32": "right", "seeds": "right"},
            rows,
        )

"""``slipstick study training-parallel``: ways of training on many devices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from ..errors import InputError
from ..studies.training_parallel.methods import EVOLUTION, METHODS, NAMES
from ..studies.training_parallel.study import (
    TASKS,
    WORKERS,
    Outcome,
    Study,
    recall,
    summarise,
    train_run,
)
from .options import Json, check_least
from .study_options import ReportOnly, Resume, check_names, run_study, two_places, write_tasks

DEFAULT_OUTPUT = Path(reports.FOLDER) / "training_parallel.json"
USUAL_SEEDS = 3
_MOST_WORKERS = 64
_MEANINGS = {
    **{method.name: method.meaning for method in METHODS},
    EVOLUTION: "evolution: seeds and fitnesses of 12 bytes",
}


def training_parallel_command(
    task: Annotated[
        list[str] | None,
        typer.Option(
            *("--task", "-t"),
            help=f"One of {', '.join(each.name for each in TASKS)}; by default all.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help=f"One of {', '.join(NAMES)}; by default all.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="By default 3, or 1 if quick.")] = None,
    workers: Annotated[int, typer.Option(help="Parts of a batch, a power of two.")] = WORKERS,
    quick: Annotated[
        bool, typer.Option("--quick", help="Digits alone, 1 seed, few epochs: about a minute.")
    ] = False,
    resume: Resume = False,
    report_only: ReportOnly = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"The report; {DEFAULT_OUTPUT} unless quick."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare ways of training on many devices: bytes, accuracy, images per second by wire."""
    study = _study(task, method, seeds, workers, quick)
    path = output or (None if quick else DEFAULT_OUTPUT)

    def write(outcomes: Sequence[Outcome]) -> dict[str, Any]:
        figures = {"tasks": summarise(study, outcomes)}
        write_tasks(path, figures["tasks"])
        return figures

    figures = run_study(
        study.runs(),
        report_only=report_only,
        recall=lambda run: recall(study, run),
        steps=study.steps,
        train=lambda run, done, _: train_run(study, run, resume=resume, done=done),
        write=write,
    )
    if json:
        console.print_json(figures)
    else:
        _show(figures)


def _study(
    tasks: list[str] | None,
    methods: list[str] | None,
    seeds: int | None,
    workers: int,
    quick: bool,
) -> Study:
    """The study that the options ask for."""
    check_least("--seeds", seeds, 1)
    known = [each.name for each in TASKS]
    check_names("--task", tasks, known)
    check_names("--method", methods, NAMES)
    if not 1 <= workers <= _MOST_WORKERS or workers & (workers - 1):
        raise InputError(
            f"--workers must be a power of two within 1..{_MOST_WORKERS}, not {workers}"
        )
    wanted = tasks or (known[:1] if quick else known)
    found = Study(
        tasks=tuple(each for each in TASKS if each.name in wanted),
        methods=tuple(dict.fromkeys(methods or NAMES)),
        seeds=seeds or (1 if quick else USUAL_SEEDS),
        quick=quick,
        workers=workers,
    )
    for each in found.tasks:
        if workers > found.recipe(each).batch:
            raise InputError(
                f"--workers must be at most {found.recipe(each).batch}, a batch of {each.name},"
                f" not {workers}"
            )
    return found


def _show(figures: dict[str, Any]) -> None:
    for entry in figures["tasks"]:
        wires = list(entry["methods"][0]["images_per_second"]) if entry["methods"] else []
        rows = [
            [
                _MEANINGS[row["method"]],
                round(row["up_bytes"]),
                two_places(row["fewer_bytes"]),
                two_places(row["test_percent"]),
                two_places(row["spread"]),
                row["complete_seeds"],
                *(round(row["images_per_second"][wire]) for wire in wires),
            ]
            for row in entry["methods"]
        ]
        columns = {"method": "text", "bytes up": "right", "times fewer": "right"}
        columns |= {"right %": "right", "spread": "right", "seeds": "right"}
        console.print_table(
            f"{entry['task']}: {entry['workers']} workers, {entry['epochs']} epochs; bytes per step"
            " and worker, images per second by wire",
            columns | dict.fromkeys(wires, "right"),
            rows,
        )

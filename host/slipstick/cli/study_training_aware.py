"""``slipstick study training-aware``: trainings that round to a format, beside rounding later."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from ..studies.training_aware.study import FORMATS, Outcome, Study, recall, summarise, train_run
from ..studies.training_aware.tasks import TASKS
from ..training.aware import find_format
from .options import Json, check_least
from .study_options import ReportOnly, Resume, check_names, run_study, two_places, write_tasks

DEFAULT_OUTPUT = Path(reports.FOLDER) / "training_aware.json"
USUAL_SEEDS = 1


def training_aware_command(
    task: Annotated[
        list[str] | None,
        typer.Option(
            *("--task", "-t"),
            help=f"One of {', '.join(each.name for each in TASKS)}; by default all.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(
            *("--format", "-f"),
            help=f"lns4 to lns8, or lns1+I+F; by default {', '.join(FORMATS)}. lns4 is studied"
            " only: no array has it, and one of lns1+3+1 runs it.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help=f"By default {USUAL_SEEDS}.")] = None,
    steps: Annotated[int | None, typer.Option(help="Instead of the tasks' own.")] = None,
    images: Annotated[int | None, typer.Option(help="Test images, at most.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Digits alone, few steps: a minute.")
    ] = False,
    resume: Resume = False,
    report_only: ReportOnly = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"The report; {DEFAULT_OUTPUT} unless quick."),
    ] = None,
    json: Json = False,
) -> None:
    """Fine-tune with weights and activations rounded, and compare with rounding afterwards."""
    study = _study(task, form, seeds, steps, images, quick)
    path = output or (None if quick else DEFAULT_OUTPUT)

    def write(outcomes: Sequence[Outcome]) -> dict[str, Any]:
        figures = {"tasks": summarise(study, outcomes)}
        write_tasks(path, figures["tasks"])
        return figures

    figures = run_study(
        study.runs(),
        report_only=report_only,
        recall=lambda run: recall(study, run),
        steps=lambda run: study.recipe(run).steps,
        train=lambda run, done, _: train_run(study, run, resume=resume, done=done),
        write=write,
    )
    if json:
        console.print_json(figures)
    else:
        _show(figures)


def _study(
    tasks: list[str] | None,
    formats: list[str] | None,
    seeds: int | None,
    steps: int | None,
    images: int | None,
    quick: bool,
) -> Study:
    """The study that the options ask for."""
    for option, value in (("--seeds", seeds), ("--steps", steps), ("--images", images)):
        check_least(option, value, 1)
    known = [each.name for each in TASKS]
    check_names("--task", tasks, known)
    for name in formats or ():
        # it refuses what is none
        find_format(name)
    wanted = tasks or (known[:1] if quick else known)
    return Study(
        tasks=tuple(each for each in TASKS if each.name in wanted),
        formats=tuple(dict.fromkeys(formats or FORMATS)),
        seeds=seeds or USUAL_SEEDS,
        steps=steps,
        images=images,
        quick=quick,
    )


def _show(figures: dict[str, Any]) -> None:
    for entry in figures["tasks"]:
        exact = entry["float32"]
        rows = [
            ["float32", *_first(exact["percent_before"], None, exact["percent"], None)],
            ["int8", *_first(exact["int8_percent_before"], None, exact["int8_percent"], None)],
        ]
        for row in entry["formats"]:
            of_row = (
                row["rounded_percent"],
                row["rounded_tuned_percent"],
                row["percent"],
                row["points_below_int8"],
            )
            rows.append([f"{row['format']} ({row['bits']} bits)", *_first(*of_row)])
        columns = {"format": "text", "before": "right", "rounded": "right", "trained": "right"}
        console.print_table(
            f"{entry['task']}: right answers in %: before, trained in float32 and rounded, trained"
            f" for the format ({entry['recipe']['steps']} steps)",
            columns | {"below int8": "right"},
            rows,
        )


def _first(*parts: dict[str, float] | None) -> list[str | None]:
    """Figures of the first kind of test images, with two places."""
    return [two_places(next(iter(part.values())) if part else None) for part in parts]

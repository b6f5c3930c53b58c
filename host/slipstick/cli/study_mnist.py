"""``slipstick study lns-mnist``: trainings in float32 and in logarithms."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from slipstick_rtl.numbers.lns.formats import Lns

from .. import console, reports
from ..cluster.opening import open_cluster_pool
from ..errors import InputError
from ..plots.figures import check_png
from ..studies.lns.mnist import Outcome, Study, load_images, recall, train, train_alone
from ..studies.lns.picture import draw_study
from ..studies.lns.summary import summarise
from ..studies.lns.trainers import MEANINGS, Arithmetic
from .csv_output import CsvFile, check_csv, write_csv
from .options import ClusterName, Json, check_least
from .study_options import ReportOnly, Resume, two_places

DEFAULT_FORMAT = "lns1+6+8"
"""The narrowest of those tried where compensation alone regains what logarithms cost."""
DEFAULT_OUTPUT = Path(reports.FOLDER) / "lns_mnist.json"
LARGEST_BATCH = 1000

QUICK = {"seeds": 1, "epochs": 3, "images": 6000, "validation": 2000}
FULL = {"seeds": 3, "epochs": 20, "images": 50_000, "validation": 10_000}


def lns_mnist_command(
    number_format: Annotated[
        str, typer.Option("--format", "-f", help="The table's format.")
    ] = DEFAULT_FORMAT,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            help="A further format to compare, or FORMAT:SEEDS; by default one seed.",
            show_default=False,
        ),
    ] = None,
    arithmetic: Annotated[
        list[Arithmetic] | None,
        typer.Option("--arithmetic", "-a", help="By default all five.", show_default=False),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="By default 3.")] = None,
    epochs: Annotated[int | None, typer.Option(help="By default 20.")] = None,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 0.05,
    batch: Annotated[int, typer.Option(help="Images of a step.")] = 20,
    quick: Annotated[
        bool, typer.Option("--quick", help="1 seed, 3 epochs, 6,000 images: some minutes.")
    ] = False,
    resume: Resume = False,
    report_only: ReportOnly = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"The report; {DEFAULT_OUTPUT} unless quick."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="A .png of error against bits.")
    ] = None,
    csv: CsvFile = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Train on MNIST in float32, with LNS products, in LNS, and in compensated LNS."""
    study = _study(number_format, sweep or [], arithmetic, seeds, epochs, rate, batch, quick)
    if plot is not None:
        check_png("--plot", plot)
    check_csv(csv)
    path = output or (None if quick else DEFAULT_OUTPUT)

    def write(outcomes: Sequence[Outcome]) -> dict[str, Any]:
        figures = summarise(study, outcomes)
        if path is not None:
            reports.write_file(path, reports.command_line(), figures)
        return figures

    if report_only:
        figures = write([recall(study, run) for run in study.runs()])
    else:
        figures = write(
            _train(study, resume, write)
            if cluster is None
            else _train_elsewhere(study, resume, write, cluster)
        )
    if plot is not None:
        draw_study(plot, figures)
    write_csv(csv, _rows(figures))
    if json:
        console.print_json(figures)
    else:
        _show(figures)


def _study(
    number_format: str,
    sweep: list[str],
    arithmetics: list[Arithmetic] | None,
    seeds: int | None,
    epochs: int | None,
    rate: float,
    batch: int,
    quick: bool,
) -> Study:
    """The study that the options ask for."""
    check_least("--seeds", seeds, 1)
    check_least("--epochs", epochs, 1)
    if not 1 <= batch <= LARGEST_BATCH:
        raise InputError(f"--batch must be within 1..{LARGEST_BATCH}, not {batch}")
    if not 0 < rate <= 1:
        raise InputError(f"--rate must be above 0 and at most 1, not {rate:g}")
    usual = QUICK if quick else FULL
    return Study(
        lns=_format(number_format),
        sweep=tuple(dict(map(_swept, sweep)).items()),
        arithmetics=tuple(dict.fromkeys(arithmetics or Arithmetic)),
        seeds=seeds or usual["seeds"],
        epochs=epochs or usual["epochs"],
        batch=batch,
        rate=rate,
        images=usual["images"],
        validation=usual["validation"],
    )


def _train(
    study: Study, resume: bool, write: Callable[[Sequence[Outcome]], object]
) -> list[Outcome]:
    """All trainings; writes what there is after each epoch."""
    images = load_images().first(study.images, study.validation)
    outcomes: list[Outcome] = []
    with console.progress("training", study.batches) as done:
        for run in study.runs():
            outcome = train(
                study,
                run,
                images,
                resume=resume,
                done=done,
                after_epoch=lambda current: write([*outcomes, current]),
            )
            outcomes.append(outcome)
    return outcomes


def _train_elsewhere(
    study: Study, resume: bool, write: Callable[[Sequence[Outcome]], object], cluster: str
) -> list[Outcome]:
    """A job per training; writes what there is after each of them.

    Checkpoints are on the machine of the worker.
    """
    runs = study.runs()
    outcomes: list[Outcome] = []
    with open_cluster_pool(cluster) as pool, console.progress("training", study.batches) as done:
        jobs = [pool.submit(train_alone, study, run, resume) for run in runs]
        for job in jobs:
            outcomes.append(job.result())
            done(study.batches // len(runs))
            write(outcomes)
    return outcomes


def _format(name: str) -> Lns:
    try:
        return Lns.parse(name)
    except ValueError as error:
        raise InputError(str(error)) from None


def _swept(text: str) -> tuple[Lns, int]:
    """A format and how many seeds of it, of FORMAT or FORMAT:SEEDS."""
    name, colon, seeds = text.partition(":")
    if colon and not re.fullmatch("0*[1-9][0-9]{0,2}", seeds, re.ASCII):
        raise InputError(f"--sweep must be FORMAT or FORMAT:SEEDS with 1..999 seeds, not {text}")
    return _format(name), int(seeds or 1)


def _rows(figures: dict[str, Any]) -> list[dict[str, object]]:
    """The figures as ``--csv`` has them: an epoch of a training each."""
    trainings = [
        (figures["format"], row["arithmetic"], int(seed), errors)
        for row in figures["table"]
        for seed, errors in row["seeds"].items()
    ]
    trainings += [
        (row["format"], row["arithmetic"], row["seed"], row["errors"]) for row in figures["sweep"]
    ]
    return [
        {
            "format": form,
            "arithmetic": arithmetic,
            "seed": seed,
            "epoch": epoch,
            "error_percent": error,
        }
        for form, arithmetic, seed, errors in trainings
        for epoch, error in enumerate(errors, start=1)
    ]


def _show(figures: dict[str, Any]) -> None:
    """The table beside the founding one."""
    rows = [
        [
            MEANINGS[Arithmetic(row["arithmetic"])],
            two_places(row["founding_error_percent"]),
            two_places(row["last_error_percent"]),
            two_places(row["last_epochs_error_percent"]),
            row["complete_seeds"],
        ]
        for row in figures["table"]
    ]
    mean = f"mean of last {figures['averaged_epochs']}"
    footer = "\n".join(
        f"{name} regains {share:.0%} of what LNS everywhere costs"
        for name, share in figures["repaired"].items()
        if share is not None
    )
    console.print_table(
        f"{figures['format']}: validation error in % after {figures['epochs']} epochs",
        {"arithmetic": "text", "founding": "right", "last epoch": "right", mean: "right"}
        | {"seeds": "right"},
        rows,
        footer,
    )
    if len(figures["formats"]) > 1:
        _show_formats(figures["formats"], mean)


def _show_formats(formats: Sequence[dict[str, Any]], mean: str) -> None:
    """A row for each format."""
    arithmetics = list(formats[0]["last_epochs_error_percent"])
    rows = [
        [
            entry["format"],
            *(two_places(entry["last_epochs_error_percent"][name]) for name in arithmetics),
            *(None if share is None else f"{share:.0%}" for share in entry["repaired"].values()),
        ]
        for entry in formats
    ]
    columns = arithmetics + [f"{name} regains" for name in formats[0]["repaired"]]
    console.print_table(
        f"Formats: validation error in %, {mean} epochs",
        {"format": "text"} | dict.fromkeys(columns, "right"),
        rows,
    )

"""``slipstick study lns-accuracy``: networks' accuracy in every format of a logarithmic array."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from .. import console, reports
from ..cluster.opening import open_cluster_pool
from ..errors import InputError
from ..studies.lns.accuracy import FLOAT, INT8, TASKS, Accuracy, Variant, measure, measure_one
from .csv_output import CsvFile, check_csv, write_csv
from .options import ClusterName, Json, Limit, check_least

_REPORTS = {Variant.ARRAY: "lns_accuracy", Variant.WIDE: "lns_accuracy_wide"}
"""The others' figures are kept with the price list, one by one."""


def lns_accuracy_command(
    network: Annotated[
        list[str] | None,
        typer.Option(
            "--network",
            help=f"One of {', '.join(task.name for task in TASKS)}; by default all.",
            show_default=False,
        ),
    ] = None,
    number_format: Annotated[
        list[str] | None,
        typer.Option(
            "--format", "-f", help="By default every one of 5 to 8 bits.", show_default=False
        ),
    ] = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="Formats of 9 to 16 bits, that no array has: rounded operands, float32."
        ),
    ] = False,
    log_sums: Annotated[
        bool,
        typer.Option("--log-sums", help="Formats of 5 to 16 bits, sums of products in them too."),
    ] = False,
    linear_activations: Annotated[
        bool,
        typer.Option(
            "--linear-activations", help="Weights of 5 and 6 bits, activations of int8; float32."
        ),
    ] = False,
    limit: Limit = None,
    csv: CsvFile = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Accuracy after training in float, int8 and logarithmic formats; writes a report if whole."""
    check_least("--limit", limit, 1)
    check_csv(csv)
    variant = _variant(
        {
            "--wide": (wide, Variant.WIDE),
            "--log-sums": (log_sums, Variant.LOG_SUMS),
            "--linear-activations": (linear_activations, Variant.LINEAR_ACTIVATIONS),
        }
    )
    formats, names = number_format or list(variant.usual), network or [task.name for task in TASKS]
    for option, given, known in (
        ("--format", formats, variant.known),
        ("--network", names, [task.name for task in TASKS]),
    ):
        for item in given:
            if item not in known:
                raise InputError(f"{option} must be one of {', '.join(known)}, not {item!r}")
    loaded = [Accuracy(task, limit) for task in TASKS if task.name in names]
    total = sum(map(len, loaded)) * (len(formats) + 1)
    with console.progress("running networks", total) as advance:
        if cluster is None:
            measured = [measure(accuracy, formats, advance, variant) for accuracy in loaded]
        else:
            measured = _measure_elsewhere(cluster, loaded, limit, formats, advance, variant)
    figures = {"networks": measured}
    if limit is None and not network and not number_format and variant in _REPORTS:
        reports.write(_REPORTS[variant], reports.command_line(), figures)
    write_csv(csv, [row for entry in measured for row in _rows(entry)])
    if json:
        console.print_json(figures)
    else:
        _show(measured)


def _measure_elsewhere(
    cluster: str,
    loaded: Sequence[Accuracy],
    limit: int | None,
    formats: Sequence[str],
    advance: Callable[[int], None],
    variant: Variant,
) -> list[dict[str, Any]]:
    """A job per network and format."""
    with open_cluster_pool(cluster) as pool:
        names = dict.fromkeys((FLOAT, INT8, *formats))
        jobs = {
            (accuracy.task, name): pool.submit(measure_one, accuracy.task, limit, variant, name)
            for accuracy in loaded
            for name in names
        }

        def percent(accuracy: Accuracy, name: str) -> float:
            found = jobs[accuracy.task, name].result()
            # the progress counts none of float's images
            advance(0 if name == FLOAT else len(accuracy))
            return found

        return [
            measure(accuracy, formats, advance, variant, partial(percent, accuracy))
            for accuracy in loaded
        ]


def _variant(options: Mapping[str, tuple[bool, Variant]]) -> Variant:
    """Chooses the variant that the options ask for."""
    chosen = {name: variant for name, (given, variant) in options.items() if given}
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} must not be given together")
    return next(iter(chosen.values()), Variant.ARRAY)


def _rows(entry: dict[str, Any]) -> list[dict[str, object]]:
    """A network's rows as ``--csv`` has them: a number format each."""
    found = [("float", entry["float_percent"]), ("int8", entry["int8_percent"])]
    found += [(each["format"], each["accuracy_percent"]) for each in entry["formats"]]
    return [
        {
            "network": entry["network"],
            "images": entry["images"],
            "numbers": name,
            "accuracy_percent": percent,
        }
        for name, percent in found
    ]


def _show(measured: list[dict[str, Any]]) -> None:
    rows = [["float", *(f"{entry['float_percent']:.2f}" for entry in measured)]]
    rows.append(["int8", *(f"{entry['int8_percent']:.2f}" for entry in measured)])
    for index, first in enumerate(measured[0]["formats"]):
        own = (f"{entry['formats'][index]['accuracy_percent']:.2f}" for entry in measured)
        rows.append([first["format"], *own])
    columns = {f"{entry['network']}, {entry['images']:,} images": "right" for entry in measured}
    console.print_table("right answers in %", {"numbers": "left", **columns}, rows)

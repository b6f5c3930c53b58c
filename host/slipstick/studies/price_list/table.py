"""The price list as a table: rows of cells out of the reports, for terminals and for Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..lns.accuracy import TASKS
from .core import inference_uj, slowest_seconds
from .kinds import KINDS, LOG, SIDE, Kind
from .list import PriceReport, measurement_key, measurements
from .measures import RESOURCES

MISSING = "–"
NONE = "none"
"""Text of cells that have nothing to measure."""

Percentages = Mapping[str, dict[str, float]]
"""By kind, and by network."""


@dataclass(frozen=True)
class Row:
    """Holds the figures that the reports have of a kind; those that they lack are None.

    Parameters
    ----------
    kind : Kind
    element, column, gates, power, array, core, errors : mappings
        A measurement's figures, empty if it is missing.
    percent : mapping of float by network
    """

    kind: Kind
    element: Mapping[str, Any]
    column: Mapping[str, Any]
    gates: Mapping[str, Any]
    power: Mapping[str, Any]
    array: Mapping[str, Any]
    core: Mapping[str, Any]
    errors: Mapping[str, Any]
    percent: Mapping[str, float]


def accuracies(folder: Path) -> Percentages:
    """Right answers in % from what ``slipstick study lns-accuracy`` wrote into a folder.

    Raises
    ------
    InputError
        If a file there is no report of that study.
    """
    found: dict[str, dict[str, float]] = {}
    for suffix in ("", "_wide"):
        path = folder / f"lns_accuracy{suffix}.json"
        if not path.exists():
            continue
        try:
            for network in json.loads(path.read_text("utf-8"))["networks"]:
                name = network["network"]
                for kind in KINDS.values():
                    if kind.lns is None:
                        found.setdefault(kind.name, {})[name] = network["int8_percent"]
                for entry in network["formats"]:
                    found.setdefault(entry["format"], {})[name] = entry["accuracy_percent"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a report of accuracies: {error!r}") from None
    return found


def rows(report: PriceReport, percent: Percentages) -> list[Row]:
    """All rows in the list's order."""

    def figures(measure: str, kind: Kind) -> Mapping[str, Any]:
        return report.figures(measurement_key(measure, kind.name))

    def measured(kind: Kind) -> dict[str, float]:
        """Accuracies that are the list's own."""
        own = {task.name: figures(f"accuracy {task.name}", kind) for task in TASKS}
        return {name: each["accuracy_percent"] for name, each in own.items() if each}

    cores = {name: figures("core", kind) for name, kind in KINDS.items()}
    seconds = slowest_seconds([core for core in cores.values() if core])

    def core(kind: Kind) -> Mapping[str, Any]:
        """With the energy at a rate that all cores reach."""
        own = cores[kind.name]
        return {**own, "inference_uj": inference_uj(own, seconds)} if own else own

    return [
        Row(
            kind=kind,
            element=figures("element", kind),
            column=figures("column", kind),
            gates=figures("gates", kind),
            power=figures("power", kind),
            array=figures("array", kind),
            core=core(kind),
            errors=figures("errors", kind),
            percent=percent.get(kind.name, {}) | measured(kind),
        )
        for kind in KINDS.values()
    ]


_ARRAY = f"{SIDE}x{SIDE}"

COLUMNS = (
    *("element", "bits", "LUT", "FF", "DSP", "EBR", "MHz"),
    *(f"{_ARRAY} {name}" for name in ("LUT", "FF", "DSP", "MHz")),
    *("um2", "ns", "pJ", "leakage, uW"),
    *("product, ulp", "sum, ulp"),
    *(f"{task.name}, %" for task in TASKS),
)
"""Headings."""

CORE_COLUMNS = (
    *("core of", "element um2", "array mm2", "cells mm2", "memories mm2", "MHz", "cycles"),
    *("element pJ", "array pJ", "cells pJ", "uJ", "of it memories", f"{TASKS[0].name}, %"),
    *("element's area", "element's energy", "core's area", "core's energy"),
)
"""Headings; the last four are shares of int8's."""

UNIT_COLUMNS = ("unit", "LUT", "FF", "DSP", "EBR", "MHz")


def cells(row: Row) -> list[str]:
    """The row's, as ``COLUMNS`` has them."""
    return [
        row.kind.name,
        str(row.kind.bits),
        *(_number(row.element.get(name), 1) for name in RESOURCES),
        _number(row.column.get("fmax_mhz"), 0),
        *_array_cells(row),
        _number(row.gates.get("um2"), 0),
        _number(row.gates.get("period_ns"), 2),
        _number(row.power.get("mac_pj"), 2),
        _number(row.power.get("leakage_uw"), 1),
        _errors(row, "product"),
        _errors(row, "sum"),
        *(_number(row.percent.get(task.name), 1 + (k > 0)) for k, task in enumerate(TASKS)),
    ]


def _array_cells(row: Row) -> list[str]:
    if row.kind.sums != LOG and not row.kind.in_core:
        return [NONE] * 4
    if "does_not_fit" in row.array:
        return [f"too large: {row.array['does_not_fit']}", *[NONE] * 3]
    counts = [_number(row.array.get(name), 0) for name in ("lut", "ff", "dsp")]
    return [*counts, _number(row.array.get("fmax_mhz"), 0)]


def _errors(row: Row, of: str) -> str:
    """Worst and mean."""
    if row.kind.lns is None:
        return "exact"
    worst, mean = (row.errors.get(f"{of}_{which}_ulp") for which in ("worst", "mean"))
    if worst == 0:
        return "exact"
    return MISSING if worst is None else f"{worst:.2f} / {mean:.2f}"


def _number(value: float | None, places: int) -> str:
    if value is None:
        return MISSING
    # as decimals are rounded by hand: 39.25 is 39.3
    rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:,}"


def core_cells(found: Sequence[Row]) -> list[list[str]]:
    """The cores', as ``CORE_COLUMNS`` has them."""
    known = [row for row in found if row.core]
    int8 = next((row for row in known if row.kind.lns is None), None)
    return [_core_cells(row, int8) for row in known]


def _core_cells(row: Row, int8: Row | None) -> list[str]:
    core = row.core
    cells = [
        row.kind.name,
        _number(core["element_um2"], 0),
        *(_number(core[name] / 1e6, 3) for name in ("array_um2", "cells_um2", "memories_um2")),
        _number(1000 / core["period_ns"], 0),
        f"{core['cycles']:,}",
        *(_number(core[name], 2) for name in ("element_pj", "array_pj", "cells_pj")),
        _number(core["inference_uj"], 1),
        f"{core['memories_uj'] / core['inference_uj']:.0%}",
        _number(row.percent.get(TASKS[0].name), 1),
    ]
    if int8 is None:
        return cells + [MISSING] * 4
    compared = ("element_um2", "element_pj", "cells_um2", "inference_uj")
    return cells + [f"{core[name] / int8.core[name]:.2f}" for name in compared]


def unit_cells(report: PriceReport) -> list[list[str]]:
    """The units', as ``UNIT_COLUMNS`` has them."""
    found: list[list[str]] = []
    for each in measurements("unit"):
        figures = report.figures(each.key)
        counts = [_number(figures.get("own", {}).get(name), 0) for name in RESOURCES]
        found.append([each.name, *counts, _number(figures.get("fmax_mhz"), 1)])
    return found


def entry(row: Row) -> dict[str, Any]:
    """The row as a JSON object."""
    return {**asdict(row), "kind": row.kind.name, "bits": row.kind.bits, "sums": row.kind.sums}


def markdown(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown; all columns but the first are aligned right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

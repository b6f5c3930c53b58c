"""Shows what ``slipstick explore`` found: as JSON, as CSV, as tables and as a picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part

from .. import console
from ..explore.explorer import Point
from ..explore.plot import draw_front
from ..explore.sweeps import Skipped, Values, swept_fields
from ..targets import Target

_ARRAY = ("pixels", "rows", "columns")
"""Fields that the array's shape tells."""
_KIBIBYTE = 1024
_MOST_TOLD = 2
"""Fields that stand beside a point of the picture."""
_MOST_LAWS = 4
_MOST_INFEASIBLE = 20
"""Lines of a table."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Request of a sweep, and its results.

    Parameters
    ----------
    models : tuple of str
        Files.
    base : Target
        Whose fields those are that were not swept.
    part : Part
    clock : tuple of float and str
        MHz, and where they come from.
    values : mapping
        What was swept, by field.
    front, dominated, infeasible : tuple of Point
    skipped : tuple of Skipped
    seconds : float
    """

    models: tuple[str, ...]
    base: Target
    part: Part
    clock: tuple[float, str]
    values: Values
    front: tuple[Point, ...] = ()
    dominated: tuple[Point, ...] = ()
    infeasible: tuple[Point, ...] = ()
    skipped: tuple[Skipped, ...] = field(default=())
    seconds: float = 0.0

    @property
    def names(self) -> list[str]:
        """The networks', without folders and suffixes; numbered where they would be alike."""
        stems = [Path(model).stem for model in self.models]
        if len(set(stems)) == len(stems):
            return stems
        return [f"{number}: {stem}" for number, stem in enumerate(stems, start=1)]

    @property
    def points(self) -> tuple[Point, ...]:
        """All that could be made."""
        return (*self.front, *self.dominated, *self.infeasible)

    @cached_property
    def told_fields(self) -> list[str]:
        """The fields besides the shape that the tables tell."""
        return self.varied(self.points)

    @staticmethod
    def varied(points: Sequence[Point]) -> list[str]:
        """The fields besides the shape in which these are not all the same."""
        return [
            name
            for name in swept_fields()
            if name not in _ARRAY
            and len({getattr(point.configuration, name) for point in points}) > 1
        ]


@dataclass(frozen=True)
class Simulated:
    """A network on the RTL of a point's configuration: cycles predicted and counted."""

    point: Point
    model: str
    predicted_cycles: int
    cycles: int

    @property
    def error(self) -> float:
        """Computes by how much the prediction is above the count, as a share of it."""
        return self.predicted_cycles / self.cycles - 1 if self.cycles else 0.0


def draw(sweep: Sweep, path: Path) -> None:
    """Writes the picture."""
    told = [name for name in sweep.varied(sweep.front) if name in sweep.values][:_MOST_TOLD]
    labels = [
        ", ".join(
            [point.configuration.shape]
            + [f"{name} {_short(getattr(point.configuration, name))}" for name in told]
        )
        for point in sweep.front
    ]
    draw_front(
        path,
        sweep.front,
        sweep.dominated,
        labels,
        title=f"{len(sweep.front) + len(sweep.dominated)} configurations on {sweep.part.device}",
        caption=f"{', '.join(sweep.names)}; at {_clock(sweep)}",
    )


def sweep_entry(
    sweep: Sweep, simulated: Sequence[Simulated] | None, picture: Path | None
) -> dict[str, Any]:
    """Everything, as ``--json`` has it."""
    return {
        "models": list(sweep.models),
        "target": sweep.base.name,
        "part": sweep.part.device,
        "chip": {
            "lut": sweep.part.luts,
            "dsp": sweep.part.multipliers,
            "bram": sweep.part.block_rams,
        },
        "clock_mhz": sweep.clock[0],
        "clock_is": sweep.clock[1],
        "swept": {name: list(values) for name, values in sweep.values.items()},
        "front": [_entry(sweep, point) for point in sweep.front],
        "dominated": [_entry(sweep, point) for point in sweep.dominated],
        "infeasible": [_entry(sweep, point) for point in sweep.infeasible],
        "skipped": [asdict(entry) for entry in sweep.skipped],
        "skipped_count": len(sweep.skipped),
        "simulated": None
        if simulated is None
        else [
            {
                "fingerprint": entry.point.configuration.fingerprint,
                "shape": entry.point.configuration.shape,
                "model": entry.model,
                "predicted_cycles": entry.predicted_cycles,
                "cycles": entry.cycles,
                "prediction_error": entry.error,
            }
            for entry in simulated
        ],
        "seconds": sweep.seconds,
        "output": None if picture is None else str(picture),
    }


def sweep_rows(
    sweep: Sweep, simulated: Sequence[Simulated] | None = None
) -> list[dict[str, object]]:
    """Returns a row per configuration, as ``--csv`` has it: the front, dominated, infeasible."""
    counted = {
        (entry.point.configuration.fingerprint, entry.model): entry.cycles
        for entry in simulated or ()
    }
    groups = (
        ("front", sweep.front),
        ("dominated", sweep.dominated),
        ("infeasible", sweep.infeasible),
    )
    return [
        {"result": result, **_row(sweep, point, counted)}
        for result, points in groups
        for point in points
    ]


def _row(sweep: Sweep, point: Point, counted: Mapping[tuple[str, str], int]) -> dict[str, object]:
    entry = _entry(sweep, point)
    row = {name: entry[name] for name in ("shape", "fingerprint")}
    row |= entry["configuration"] | asdict(point.area)
    row["inferences_per_second"] = entry["inferences_per_second"]
    for name, network in zip(sweep.names, entry["networks"], strict=False):
        cycles = counted.get((entry["fingerprint"], network["model"]))
        for what in ("predicted_cycles", "inferences_per_second", "utilisation"):
            row[f"{name} {what}"] = network[what]
        if cycles is not None:
            row[f"{name} cycles"] = cycles
    return {**row, "problem": entry["problem"]}


def _entry(sweep: Sweep, point: Point) -> dict[str, Any]:
    return {
        "shape": point.configuration.shape,
        "fingerprint": point.configuration.fingerprint,
        "configuration": point.configuration.to_dict(),
        **asdict(point.area),
        "inferences_per_second": point.rate or None,
        "networks": [
            {
                "model": model,
                "predicted_cycles": cost.cycles,
                "inferences_per_second": rate,
                "utilisation": cost.macs / (cost.cycles * point.configuration.macs_per_cycle),
            }
            # what is not feasible has no costs
            for model, cost, rate in zip(sweep.models, point.costs, point.rates, strict=False)
        ],
        "problem": point.problem or None,
    }


def show(sweep: Sweep, simulated: Sequence[Simulated] | None, picture: Path | None) -> None:
    """Prints the tables: the front first, then what it dominates, then what cannot be had."""
    if sweep.front:
        _show_feasible(sweep, picture)
    if simulated is not None:
        _show_simulated(sweep, simulated)
    if sweep.infeasible:
        _show_infeasible(sweep)
    if sweep.skipped:
        _show_skipped(sweep)


def _show_feasible(sweep: Sweep, picture: Path | None) -> None:
    columns = {"": "left", **_hardware_columns(sweep), "FF": "right"}
    columns |= dict.fromkeys((*(f"{name}, 1/s" for name in sweep.names), "mean, 1/s"), "right")
    rows = [
        [
            mark,
            *_hardware(sweep, point),
            point.area.ff,
            *(f"{rate:,.0f}" for rate in point.rates),
            f"{point.rate:,.0f}",
        ]
        for mark, points in (("front", sweep.front), ("", sweep.dominated))
        for point in points
    ]
    console.print_table(
        f"Configurations on {sweep.part.device}, cycles predicted, area estimated",
        columns,
        rows,
        f"{len(sweep.front):,} on the Pareto front of mean and LUTs, {len(sweep.dominated):,}"
        f" dominated, {len(sweep.infeasible):,} infeasible, {len(sweep.skipped):,} cannot be made;"
        f" all at {_clock(sweep)}; {sweep.seconds:.1f} s; picture: {picture}",
    )


def _show_infeasible(sweep: Sweep) -> None:
    """The smallest ones."""
    ordered = sorted(sweep.infeasible, key=lambda point: point.area.lut)
    rows = [[*_hardware(sweep, point), point.problem] for point in ordered[:_MOST_INFEASIBLE]]
    columns = {**_hardware_columns(sweep), "why not": "text"}
    others = len(ordered) - len(rows)
    footer = f"and {others:,} larger ones; --json has them all" if others else ""
    console.print_table(f"Infeasible on {sweep.part.device}", columns, rows, footer)


def _show_skipped(sweep: Sweep) -> None:
    """The laws that most of them break."""
    laws = Counter(entry.law for entry in sweep.skipped).most_common()
    for law, count in laws[:_MOST_LAWS]:
        console.print_line(f"{count:,} cannot be made: {law}")
    others = sum(count for _, count in laws[_MOST_LAWS:])
    if others:
        console.print_line(f"{others:,} more cannot be made; --json has the law that each breaks")


def _show_simulated(sweep: Sweep, simulated: Sequence[Simulated]) -> None:
    columns = {**_hardware_columns(sweep), "network": "left"}
    columns |= dict.fromkeys(("cycles", "predicted", "error"), "right")
    rows = [
        [
            *_hardware(sweep, entry.point),
            Path(entry.model).stem,
            entry.cycles,
            entry.predicted_cycles,
            f"{entry.error:+.2%}",
        ]
        for entry in simulated
    ]
    console.print_table("The front, RTL simulated", columns, rows)


def _hardware_columns(sweep: Sweep) -> Mapping[str, str]:
    """Headings of what ``_hardware`` gives."""
    return {"array": "left"} | dict.fromkeys((*sweep.told_fields, "LUT", "DSP", "BRAM"), "right")


def _hardware(sweep: Sweep, point: Point) -> list[object]:
    values = [getattr(point.configuration, name) for name in sweep.told_fields]
    return [point.configuration.shape, *values, point.area.lut, point.area.dsp, point.area.bram]


def _short(value: int | str) -> str:
    """A size as people write it."""
    if isinstance(value, int) and value >= _KIBIBYTE and value % _KIBIBYTE == 0:
        return f"{value // _KIBIBYTE}K"
    return str(value)


def _clock(sweep: Sweep) -> str:
    return f"{sweep.clock[0]:g} MHz ({sweep.clock[1]})"

"""The price list: measurements by key in one report, and what is missing of them."""

import json
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slipstick_rtl.numbers.lns.formats import Lns

from ... import reports
from ... import toolchain as tools
from ...errors import InputError
from ...targets import find_target
from ..lns.accuracy import TASKS, Accuracy, Task
from .core import core
from .errors import errors
from .kinds import KINDS, LOG, SIDE, Kind
from .measures import array, column, element, gates, unit
from .power import power

REPORT = Path(reports.FOLDER) / "price_list.json"

UNIT_FORMATS = ("lns1+3+4", "lns1+6+6", "lns1+5+10")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One of those that the list is made of.

    Parameters
    ----------
    measure : str
        One of ``MEASURES``; of an accuracy with the network behind it.
    name : str
        Of the kind, or of the unit's format and whether it is compensated.
    run : callable
        Takes a folder for its files, returns its figures.
    side : int
        Of an array.
    """

    measure: str
    name: str
    run: Callable[[Path], Figures]
    side: int = SIDE

    @property
    def key(self) -> str:
        """In the report."""
        return measurement_key(self.measure, self.name, self.side)

    def versions(self) -> dict[str, str]:
        """Returns the versions of the tools and packages that it is measured with."""
        if self.measure.split()[0] in ("errors", "accuracy"):
            return {"numpy": version("numpy")}
        timing = tools.OPENSTA if self.measure in ("gates", "power", "core") else tools.NEXTPNR_ECP5
        return {tool.name: _version(tool) for tool in (tools.YOSYS, timing)}

    @property
    def command(self) -> str:
        """Returns the command that repeats it."""
        side = "" if self.side == SIDE else f" --side {self.side}"
        kind = shlex.quote(self.name)
        measure = self.measure.split()[0]
        return f"slipstick study price-list --measure {measure} --kind {kind}{side}"


@cache
def _version(tool: tools.Tool) -> str:
    return tool.version()


def measurement_key(measure: str, name: str, side: int = SIDE) -> str:
    """Under which the report has a measurement."""
    return f"array {side}x{side} {name}" if measure == "array" else f"{measure} {name}"


def _units() -> Iterator[tuple[str, Callable[[Path], Figures]]]:
    for name in UNIT_FORMATS:
        for compensated in (False, True):
            run = partial(unit, Lns.parse(name), compensated=compensated)
            yield f"{name} {'compensated' if compensated else 'plain'}", run


def measurements(measure: str, side: int = SIDE) -> list[Measurement]:
    """All of one measure, in the list's order."""
    if measure == "unit":
        return [Measurement(measure, name, run) for name, run in _units()]
    if measure == "array":
        # sums are linear in no core whose formats are wider than a byte
        kinds = [kind for kind in KINDS.values() if kind.in_core or kind.sums == LOG]
        return [
            Measurement(measure, kind.name, partial(array, kind, side=side), side) for kind in kinds
        ]
    if measure == "accuracy":
        # the others' are those of `slipstick study lns-accuracy`
        return [
            Measurement(f"{measure} {task.name}", kind.name, partial(_accuracy, task, kind))
            for task in TASKS
            for kind in KINDS.values()
            if kind.sums == LOG or kind.linear_activations
        ]
    if measure == "core":
        kinds = [kind for kind in KINDS.values() if kind.core_target]
        return [Measurement(measure, kind.name, partial(_core, kind)) for kind in kinds]
    if measure == "errors":
        kinds = [kind for kind in KINDS.values() if kind.lns is not None]
        return [Measurement(measure, kind.name, partial(_errors, kind)) for kind in kinds]
    if measure == "power":
        # packed elements are an FPGA's
        kinds = [kind for kind in KINDS.values() if not kind.is_packed]
        return [Measurement(measure, kind.name, partial(power, kind)) for kind in kinds]
    run = {"element": element, "column": column, "gates": gates}[measure]
    return [Measurement(measure, kind.name, partial(run, kind)) for kind in KINDS.values()]


def _errors(kind: Kind, folder: Path) -> Figures:
    """As a measurement, though it needs no tools."""
    return errors(kind)


@cache
def _loaded(task: Task) -> Accuracy:
    return Accuracy(task)


def _accuracy(task: Task, kind: Kind, folder: Path) -> Figures:
    """Measures the accuracy of a network that is emulated, which needs no files."""
    loaded = _loaded(task)
    emulated = loaded.in_mixed if kind.linear_activations else loaded.in_log_sums
    percent = emulated(kind.log_format.name, lambda count: None)
    return {"images": len(loaded), "accuracy_percent": percent}


def _core(kind: Kind, folder: Path) -> Figures:
    """Measures a core that runs the first network on its first image."""
    loaded = _loaded(TASKS[0])
    assert kind.core_target is not None
    return core(find_target(kind.core_target), loaded.quantised(kind.lns), loaded.samples, folder)


def measure_alone(measurement: Measurement) -> Figures:
    """A measurement as a job for another process; its files are not kept."""
    with tempfile.TemporaryDirectory(prefix="slipstick-price-") as folder:
        return measurement.run(Path(folder))


MEASURES = ("errors", "element", "column", "gates", "power", "unit", "accuracy", "core", "array")
"""The quick ones first."""


class PriceReport:
    """The report's file, read anew and written whole with every measurement.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        If it is there and is no report.
    """

    def __init__(self, path: Path = REPORT) -> None:
        self._path = path
        self._measurements = self._read()

    def _read(self) -> dict[str, Figures]:
        if not self._path.exists():
            return {}
        try:
            return dict(json.loads(self._path.read_text("utf-8"))["measurements"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self._path} is not a report of prices: {error!r}") from None

    def __contains__(self, key: str) -> bool:
        return key in self._measurements

    def figures(self, key: str) -> Figures:
        """A measurement's; empty if it is missing."""
        return self._measurements.get(key, {})

    def record(self, measurement: Measurement, figures: Figures) -> None:
        """Writes one measurement, with the command that repeats it."""
        # another process may have measured something meanwhile
        self._measurements = self._read()
        self._measurements[measurement.key] = {
            **figures,
            **reports.stamp(measurement.command),
            "versions": measurement.versions(),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        ordered = dict(sorted(self._measurements.items()))
        text = json.dumps({"measurements": ordered}, indent=2) + "\n"
        draft = self._path.with_suffix(".new")
        draft.write_text(text, "utf-8")
        draft.replace(self._path)


def wanted(
    report: PriceReport,
    measures: Sequence[str],
    names: Sequence[str],
    *,
    only_missing: bool,
    side: int = SIDE,
) -> list[Measurement]:
    """Lists the measurements that a run has to make; of the names given, in their order.

    Raises
    ------
    InputError
        If none of the measures has something of this name.
    """
    found: list[Measurement] = []
    for measure in measures:
        own = measurements(measure, side)
        order = names or list(dict.fromkeys(each.name for each in own))
        found += [each for name in order for each in own if each.name == name]
    known = {each.name for each in found}
    for name in names:
        if name not in known:
            every = dict.fromkeys(each.name for m in measures for each in measurements(m, side))
            raise InputError(f"--kind must be one of {', '.join(every)}, not {name!r}")
    return [each for each in found if not (only_missing and each.key in report)]

"""The numbers of the area's estimate, fitted to the reports of place and route."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration

from .. import console, reports
from ..targets import TARGETS, Target
from .area import FLIP_FLOPS, LUTS, Area, add_parts, count_parts, estimate

EXPECTED: Mapping[str, Mapping[str, float]] = {
    "lut": {
        "fixed": 3300,
        "plain": 24,
        "packed": 38,
        "lut": 108,
        "gather": 195,
        "sum": 92,
        "lane": 720,
        "sdram": 3600,
        "ddr3": 5400,
    },
    "ff": {
        "fixed": 3300,
        "plain": 56,
        "packed": 66,
        "lut": 105,
        "gather": 220,
        "sum": 110,
        "lane": 640,
        "sdram": 1900,
        "ddr3": 3200,
    },
}
"""Expected size of each part: counted in netlists of single units and of the whole."""

_REPORT_ERROR = 0.01
"""Relative error of reports against the estimate: one netlist differs as much from seed to seed."""
_EXPECTATION_ERROR = 0.25
"""Relative error of a part against what is expected of it."""


@dataclass(frozen=True)
class Sample:
    """A target that has been built, and what its report says that it takes."""

    name: str
    configuration: Configuration
    reported: Area


def samples() -> list[Sample]:
    """All targets with int8, an ECP5, the pipelined engine and a report of this very hardware."""
    found = []
    for target in TARGETS.values():
        report = _report(target)
        if report is not None:
            reported = Area(**{name: int(report[name]) for name in ("lut", "ff", "dsp", "bram")})
            found.append(Sample(target.name, target.configuration, reported))
    return found


def _report(target: Target) -> dict[str, Any] | None:
    if target.part is None or not target.part.device.startswith("LFE5U"):
        return None
    if target.configuration.traits.shares_memory or not target.configuration.format.uses_dsp_blocks:
        return None
    return reports.last_build(target.configuration.fingerprint, target.name, link="uart")


def fit(found: Sequence[Sample], resource: str) -> dict[str, float]:
    """The numbers of a resource that make the relative errors smallest.

    Reports weigh by ``_REPORT_ERROR``, expectations by ``_EXPECTATION_ERROR``: where reports do not
    tell two parts from each other, both stay in the proportion that is expected.

    Parameters
    ----------
    found : sequence of Sample
    resource : str
        "lut" or "ff".

    Returns
    -------
    dict of float by part
    """
    expected = EXPECTED[resource]
    whole = np.eye(len(expected)) / _EXPECTATION_ERROR
    rows = [whole]
    for sample in found:
        counts = count_parts(sample.configuration)
        share = np.array([counts[name] * number for name, number in expected.items()])
        rows.append(share[None] / asdict(sample.reported)[resource] / _REPORT_ERROR)
    goal = np.ones(len(expected) + len(found))
    goal[: len(expected)] /= _EXPECTATION_ERROR
    goal[len(expected) :] /= _REPORT_ERROR
    factors = np.linalg.lstsq(np.concatenate(rows), goal, rcond=None)[0]
    numbers = np.array(list(expected.values())) * factors
    return {name: round(float(number), 1) for name, number in zip(expected, numbers, strict=True)}


def held_out(found: Sequence[Sample], sample: Sample, resource: str) -> float:
    """The relative error on a sample of numbers fitted to other hardware only."""
    others = [
        other
        for other in found
        if other.configuration.fingerprint != sample.configuration.fingerprint
    ]
    estimated = add_parts(sample.configuration, fit(others, resource))
    return estimated / asdict(sample.reported)[resource] - 1


def main() -> int:
    """Prints estimates beside reports, and the numbers that a new fit gives."""
    found = samples()
    if not found:
        console.print_line("no report of place and route is of the hardware that the targets have")
        return 0
    _show_errors(found)
    fitted = {resource: fit(found, resource) for resource in EXPECTED}
    present = {"lut": LUTS, "ff": FLIP_FLOPS}
    columns = {"part": "left"}
    for resource in EXPECTED:
        columns |= {resource.upper(): "right", f"{resource.upper()} fitted anew": "right"}
    rows = [
        [name]
        + [f"{table[resource][name]:.1f}" for resource in EXPECTED for table in (present, fitted)]
        for name in EXPECTED["lut"]
    ]
    console.print_table("What a part takes", columns, rows)
    return 0


def _show_errors(found: Sequence[Sample]) -> None:
    """Each report beside the estimate."""
    columns = {"target": "left", "array": "left"}
    for name in ("LUT", "FF"):
        columns |= dict.fromkeys(
            (name, f"{name} reported", f"{name} error", f"{name} held out"), "right"
        )
    columns |= dict.fromkeys(("DSP", "DSP reported", "BRAM", "BRAM reported"), "right")
    rows = []
    for sample in found:
        row: list[object] = [sample.name, sample.configuration.shape]
        estimated, reported = asdict(estimate(sample.configuration)), asdict(sample.reported)
        for name in ("lut", "ff"):
            error = estimated[name] / reported[name] - 1
            outside = held_out(found, sample, name)
            row += [estimated[name], reported[name], f"{error:+.1%}", f"{outside:+.1%}"]
        for name in ("dsp", "bram"):
            row += [estimated[name], reported[name]]
        rows.append(row)
    footer = "Held out: the error of numbers fitted to the reports of other arrays only."
    console.print_table("Estimates beside reports", columns, rows, footer)

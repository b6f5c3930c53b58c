"""Static timing: the fastest clock of a mapped design and its critical path, by block."""

import re
from dataclasses import dataclass
from typing import Any

from ..errors import TargetError
from .sta import CLOCK_PORT, Place, TimedDesign

_PERIOD_NS = 10.0
"""At which slack is asked for; it falls as much as the period does."""

_STEP = re.compile(r"^ +(-?[\d.]+) +(-?[\d.]+) [v^] (\S+)/(\S+) \((\S+)\)$", re.M)
_SLACK = re.compile(r"^ +(-?[\d.]+) +slack ", re.M)
_MARK = "=== "


@dataclass(frozen=True)
class Step:
    """A cell on a path: where it is, what it is, and when its output has changed."""

    place: Place
    cell: str
    time_ns: float


@dataclass(frozen=True)
class Timing:
    """The fastest clock of a design without wires, its clock arriving everywhere at once.

    Parameters
    ----------
    period_ns : float
    path : tuple of Step
        The critical path, from a register to what the next one takes.
    port_period_ns : float or None
        What paths from and to ports allow, if a register's output stands before every input; None
        without such paths.
    """

    period_ns: float
    path: tuple[Step, ...]
    port_period_ns: float | None

    @property
    def fmax_mhz(self) -> float:
        """The clock, megahertz."""
        return 1000 / self.period_ns

    def figures(self) -> dict[str, Any]:
        """As reports have it."""
        return {
            "period_ns": round(self.period_ns, 4),
            "fmax_mhz": round(self.fmax_mhz, 1),
            "port_period_ns": None
            if self.port_period_ns is None
            else round(self.port_period_ns, 4),
            "critical_path": {
                "from": str(self.path[0].place),
                "to": str(self.path[-1].place),
                "cells": len(self.path),
                "steps": [
                    {"at": str(step.place), "cell": step.cell, "ns": step.time_ns}
                    for step in self.path
                ],
            },
        }


def static_timing(design: TimedDesign) -> Timing:
    """Finds the fastest clock.

    Raises
    ------
    TargetError
        If OpenSTA is missing or fails, or the design has no path between registers.
    """
    paths = {
        "inside": "-from $registers -to $ends",
        "in": "-from $inputs -to $ends",
        "out": "-from $registers -to [all_outputs]",
    }
    commands = [
        "set registers [all_registers -clock_pins]",
        "set ends [all_registers -data_pins]",
        "set inputs [list]",
        "foreach port [all_inputs] {",
        f'  if {{![string match "*_{CLOCK_PORT}" [get_name $port]]}} {{lappend inputs $port}}',
        "}",
        "set_input_delay 0 -clock clock $inputs",
        "set_output_delay 0 -clock clock [all_outputs]",
    ]
    for name, between in paths.items():
        commands += [f'puts "{_MARK}{name}"', f"report_checks {between} -digits 4"]
    text = design.run("timing", commands, period_ns=_PERIOD_NS)
    sections = dict(part.split("\n", 1) for part in text.split(_MARK)[1:])
    period = _period(sections["inside"])
    if period is None:
        raise TargetError(f"design {design.mapping.top} must have a path between registers")
    steps = tuple(
        Step(design.place(instance), cell, float(time))
        for _, time, instance, _, cell in _STEP.findall(sections["inside"].split("data arrival")[0])
    )[1:]
    # the first step is a register's output
    late = {"in": steps[0].time_ns, "out": 0.0}
    ports = [found + late[name] for name in late if (found := _period(sections[name])) is not None]
    return Timing(period, steps, max(ports, default=None))


def _period(report: str) -> float | None:
    """Computes the shortest clock period that a path allows; None if there is no path."""
    slack = _SLACK.search(report)
    return None if slack is None else _PERIOD_NS - float(slack[1])

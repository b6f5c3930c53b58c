"""Setup and hold of a routed block by OpenSTA, with the wires that were extracted."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..asic import opensta
from ..asic.pdk import Pdk
from ..errors import TargetError
from .netlist import CLOCK

_PERIOD_NS = 100.0
"""At which slack is asked for; the fastest clock follows from it."""

_SLACK = re.compile(r"^ +(-?[\d.]+) +slack ", re.M)
_SKEW = re.compile(r"^ *-?[\d.]+ +-?[\d.]+ +(-?[\d.]+) *$", re.M)
_LATENCY = re.compile(r"^ +-?[\d.]+ +(-?[\d.]+) +clock network delay", re.M)
_STEP = re.compile(r"^ +-?[\d.]+ +(-?[\d.]+) [v^] (\S+)/(\S+) \((\S+)\)$", re.M)
_MARK = "=== "

_LOAD = f"""read_liberty cells.lib
read_verilog {{name}}.v
link_design {{name}}
create_clock -name clock -period {_PERIOD_NS:g} [get_ports {CLOCK}]
set_propagated_clock [get_clocks clock]
set_cmd_units -time ns
{{spef}}set registers [all_registers -clock_pins]
set ends [all_registers -data_pins]
set inputs [list]
foreach port [all_inputs] {{{{
  if {{{{[get_name $port] ne "{CLOCK}"}}}} {{{{lappend inputs $port}}}}
}}}}
set_input_delay 0 -clock clock $inputs
set_output_delay 0 -clock clock [all_outputs]
"""

_PATHS = {
    "setup": "-path_delay max -from $registers -to $ends",
    "hold": "-path_delay min -from $registers -to $ends",
    "in": "-path_delay max -from $inputs -to $ends",
    "out": "-path_delay max -from $registers -to [all_outputs]",
}


@dataclass(frozen=True)
class WireTiming:
    """Timing of a routed block, at the library's only corner.

    Parameters
    ----------
    period_ns : float
        The longest path between registers, setup and the clock's skew counted.
    hold_slack_ns : float
        The smallest between registers; negative if one takes its data too early.
    skew_ns : float
        The largest difference of the clock's arrival at two registers with a path between them.
    clock_latency_ns : float
        From the clock's port to the registers of the longest path.
    port_period_ns : float or None
        The longest path from or to a port, seen from the clock's port; None without one.
    critical_path : tuple of (cell, ns) pairs
        When each cell's output has changed.
    """

    period_ns: float
    hold_slack_ns: float
    skew_ns: float
    clock_latency_ns: float
    port_period_ns: float | None
    critical_path: tuple[tuple[str, float], ...]

    @property
    def fmax_mhz(self) -> float:
        """The clock, megahertz."""
        return 1000 / self.period_ns

    def figures(self) -> dict[str, Any]:
        """Returns the figures as reports have them."""
        return {
            "period_ns": round(self.period_ns, 4),
            "fmax_mhz": round(self.fmax_mhz, 1),
            "hold_slack_ns": round(self.hold_slack_ns, 4),
            "skew_ns": round(self.skew_ns, 4),
            "clock_latency_ns": round(self.clock_latency_ns, 4),
            "port_period_ns": None
            if self.port_period_ns is None
            else round(self.port_period_ns, 4),
            "critical_path": [{"cell": cell, "ns": time} for cell, time in self.critical_path],
        }


def time_layout(folder: Path, name: str, pdk: Pdk, program: str, *, wires: bool) -> WireTiming:
    """Finds setup, hold and skew of a block's netlist after layout.

    Parameters
    ----------
    folder : Path
        With the netlist ``NAME.v``, and ``NAME.spef`` if there are wires. An SDF file with all
        delays is written there as well, ``NAME.sdf``, if there are wires.
    name : str
    pdk : Pdk
    program : str
        OpenSTA.
    wires : bool
        Whether they count; without them there is the clock's tree, and pins alone are loads.

    Raises
    ------
    TargetError
        If OpenSTA fails, or the block has no path between registers.
    """
    shutil.copyfile(pdk.liberty, folder / "cells.lib")
    spef = f"read_spef {name}.spef\n" if wires else ""
    commands = _LOAD.format(name=name, spef=spef).splitlines()
    for section, between in _PATHS.items():
        commands += [f'puts "{_MARK}{section}"', f"report_checks {between} -digits 4"]
    commands += [f'puts "{_MARK}skew"', "report_clock_skew -setup -digits 4"]
    if wires:
        commands += [f"write_sdf -digits 4 {name}.sdf"]
    step = "timing_with_wires" if wires else "timing_without_wires"
    return read_timing(opensta.run(program, step, commands, folder / f"{step}.tcl"), name)


def read_timing(text: str, name: str) -> WireTiming:
    """Reads OpenSTA's reports.

    Raises
    ------
    TargetError
        If there is no path between registers.
    """
    sections = dict(part.split("\n", 1) for part in text.split(_MARK)[1:] if "\n" in part)
    setup, hold = (_slack(sections.get(section, "")) for section in ("setup", "hold"))
    if setup is None or hold is None:
        raise TargetError(f"block {name} must have a path between registers")
    latency = _LATENCY.search(sections["setup"])
    skew = _SKEW.search(sections.get("skew", ""))
    ports = [
        slack for part in ("in", "out") if (slack := _slack(sections.get(part, ""))) is not None
    ]
    path = sections["setup"].split("data arrival")[0]
    return WireTiming(
        period_ns=_PERIOD_NS - setup,
        hold_slack_ns=hold,
        skew_ns=float(skew[1]) if skew else 0.0,
        clock_latency_ns=float(latency[1]) if latency else 0.0,
        port_period_ns=_PERIOD_NS - min(ports) if ports else None,
        critical_path=tuple((cell, float(time)) for time, _, _, cell in _STEP.findall(path)),
    )


def _slack(report: str) -> float | None:
    """The slack of a report's path; None if there is no path."""
    slack = _SLACK.search(report)
    return None if slack is None else float(slack[1])

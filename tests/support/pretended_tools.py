"""Tools that only pretend to build: what they print, write and report."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from slipstick.fpga.toolchains import TOOLCHAINS
from slipstick.targets import Target
from slipstick.toolchain import OPENSTA
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.parts import Part

SMALL = Configuration(
    rows=4, columns=4, lanes=4, activation_bytes=1 << 10, weight_bytes=1 << 10, clock_hz=100_000_000
)
PART = Part("LFE5U-25F", "CABGA381", 6, 24_288, 56, 28)
TARGET = Target("tiny", "a tiny one", SMALL, "ulx3s-25f", PART)
ECP5 = TOOLCHAINS["ECP5"]


def report_text(fmax: float = 104.26, luts: int = 14359, other: float = 208.52) -> str:
    """A report of nextpnr, cut down to what is read."""
    clock = "$glbnet$clocking.clock"

    def step(source: str, sink: str) -> dict[str, Any]:
        return {"from": {"cell": source, "port": "Q"}, "to": {"cell": sink, "port": "D"}}

    counts = {"TRELLIS_COMB": luts, "TRELLIS_FF": 14068, "MULT18X18D": 24, "DP16KD": 48}
    return json.dumps(
        {
            "fmax": {
                clock: {"achieved": fmax, "constraint": 105.0},
                "$glbnet$usb": {"achieved": other, "constraint": 48.0},
            },
            "utilization": {
                kind: {"used": used, "available": 24288} for kind, used in counts.items()
            },
            "critical_paths": [
                {"from": "<async>", "to": f"posedge {clock}", "path": [step("pin", "x")]},
                {
                    "from": f"posedge {clock}",
                    "to": f"posedge {clock}",
                    "path": [
                        step("a", "a"),
                        step("a", "b_CIN_ALU_COUT"),
                        step("b_CIN_ALU_COUT_CIN_ALU_COUT", "c"),
                    ],
                },
            ],
        }
    )


def pretend(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: str = "", **bodies: str
) -> None:
    """Tools that run a line of Python each; ``arguments`` are theirs.

    Asked for help, they print ``options``.
    """
    folder.mkdir(exist_ok=True)
    for tool in (*ECP5.tools, OPENSTA):
        body = bodies.get(tool.variable, "pass")
        program = folder / tool.name
        program.write_text(
            f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\narguments = sys.argv[1:]\n"
            f"if '--version' in arguments:\n    sys.exit('{tool.name} (Version 9.1-2)')\n"
            f"if '--help' in arguments:\n    sys.exit({options!r})\n{body}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(tool.variable, str(program))


NETLIST = {
    "modules": {
        "slipstick": {
            "ports": {"o": {"direction": "output", "bits": [4]}},
            "cells": {
                f"carry_{bit}": {
                    "type": "CCU2C",
                    "parameters": {"INIT0": "0" * 16},
                    "port_directions": {
                        "C0": "input",
                        "D0": "input",
                        "CIN": "input",
                        "COUT": "output",
                    },
                    "connections": {"C0": ["0"], "D0": ["0"], "CIN": [bit - 1], "COUT": [bit]},
                }
                for bit in (2, 3, 5)
            },
        }
    }
}
SYNTHESIS = f"Path('netlist.json').write_text({json.dumps(json.dumps(NETLIST))})"


def placement(fmax: float = 104.26, **counts: Any) -> str:
    """Place and route that writes its report where it is told to."""
    text = report_text(fmax, **counts)
    return f"Path(arguments[arguments.index('--report') + 1]).write_text({text!r})"


PLACEMENT = placement()
PACKING = "Path(arguments[-1]).write_bytes(b'bits')"

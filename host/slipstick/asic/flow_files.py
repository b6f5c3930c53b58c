"""Writes the layout tools' files: constraints, and settings of LibreLane and OpenROAD's flow."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .gate_count import GateCount
from .processes import PROCESSES, Process

CONSTRAINTS = "slipstick.sdc"
LIBRELANE = "config.json"

_MARGIN = 20.0
"""Micrometres between the edge of the die and the rows, for the power ring."""

_DENSITY_PERCENT = 60
"""Target density of placement: above ``FILLED``, with a reserve for buffers that come later."""

_IO_SHARE = 0.2
"""Share of a cycle that belongs to the logic outside, at either end."""

_UNCERTAINTY = 0.25
"""Nanoseconds of jitter and of what a clock tree is expected to be off."""


@dataclass(frozen=True)
class Flow:
    """A design as layout tools must know it.

    Parameters
    ----------
    top : str
        Its module.
    clock, reset : str
        Ports.
    period : float
        Nanoseconds.
    verilog : sequence of str
        File names.
    gates : GateCount
    memories : str
        One of ``memories.TECHNOLOGIES``.
    """

    top: str
    clock: str
    reset: str
    period: float
    verilog: Sequence[str]
    gates: GateCount
    memories: str

    def die_side(self, process: Process) -> int:
        """Micrometres of a square die, in tens."""
        side = math.sqrt(self.gates.core_area(process, self.memories)) + 2 * _MARGIN
        return math.ceil(side / 10) * 10

    def files(self) -> Mapping[str, str]:
        """Texts by file name."""
        texts = {CONSTRAINTS: self._constraints(), LIBRELANE: self._librelane()}
        return texts | {f"{process.openroad}.mk": self._openroad(process) for process in PROCESSES}

    def _constraints(self) -> str:
        delay = f"{self.period * _IO_SHARE:g}"
        return f"""# Nanoseconds. One clock; {self.reset} is synchronous, so there is no false path.
create_clock -name {self.clock} -period {self.period:g} [get_ports {{{self.clock}}}]
set_clock_uncertainty {_UNCERTAINTY:g} [get_clocks {{{self.clock}}}]
set slipstick_inputs [list]
foreach port [all_inputs] {{
    if {{[get_property $port full_name] ne "{self.clock}"}} {{ lappend slipstick_inputs $port }}
}}
set_input_delay {delay} -clock {self.clock} $slipstick_inputs
set_output_delay {delay} -clock {self.clock} [all_outputs]
"""

    def _librelane(self) -> str:
        """One configuration for all processes: what differs stands under their names."""
        configuration = {
            "meta": {"version": 2, "flow": "Classic"},
            "DESIGN_NAME": self.top,
            "VERILOG_FILES": [f"dir::{name}" for name in self.verilog],
            "CLOCK_PORT": self.clock,
            "CLOCK_PERIOD": self.period,
            "PNR_SDC_FILE": f"dir::{CONSTRAINTS}",
            "SIGNOFF_SDC_FILE": f"dir::{CONSTRAINTS}",
            "FP_SIZING": "absolute",
            "PL_TARGET_DENSITY_PCT": _DENSITY_PERCENT,
        }
        for process in PROCESSES:
            side = self.die_side(process)
            configuration[f"pdk::{process.librelane}"] = {"DIE_AREA": [0, 0, side, side]}
        return json.dumps(configuration, indent=2) + "\n"

    def _openroad(self, process: Process) -> str:
        side = self.die_side(process)
        inner = side - _MARGIN
        largest = max((macro.size for macro in self.gates.macros), default=0)
        here = "$(dir $(DESIGN_CONFIG))"
        values = {
            "DESIGN_NAME": self.top,
            "PLATFORM": process.openroad,
            "VERILOG_FILES": " ".join(f"{here}{name}" for name in self.verilog),
            "SDC_FILE": f"{here}{CONSTRAINTS}",
            "DIE_AREA": f"0 0 {side} {side}",
            "CORE_AREA": f"{_MARGIN:g} {_MARGIN:g} {inner:g} {inner:g}",
            "PLACE_DENSITY": f"{_DENSITY_PERCENT / 100:g}",
            # more than the 4,096 that it makes flip-flops of unasked
            "SYNTH_MEMORY_MAX_BITS": str(max(4096, largest)),
        }
        return "".join(f"export {name} = {value}\n" for name, value in values.items())

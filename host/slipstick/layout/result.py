"""The result of a layout, and its figures for reports."""

from dataclasses import dataclass
from typing import Any

from ..asic.implementation import Implementation
from . import lvs
from .blocks import Block
from .def_file import Routed
from .delays import needed_period
from .power import WirePower
from .project import Project
from .simulation import Simulation
from .timing import WireTiming
from .vesta import VestaTiming

ABSTRACT = (
    "cells are checked and written as their LEF shows them, metal alone: Debian's packages hold no"
    " transistors"
)

LIMITS = (
    "antenna rules are not checked: neither LEF nor magic's technology file has any",
    "the library has one corner, typical",
    "the clock's port is driven without a delay, whatever its load",
)
"""Limits that the packages set to a layout, told with the figures."""


@dataclass(frozen=True)
class Layout:
    """A finished layout.

    Parameters
    ----------
    block : Block
    project : Project
        Its files: ``layout/NAME.gds``, ``.def``, ``.lef``, ``.spice``, and ``timing/NAME.v``,
        ``.spef``, ``.sdf``.
    gates : Implementation
        The same block without wires.
    clock_buffers : list of int
        Of each level of the clock's tree, the one of the flip-flops first.
    routed : Routed
    wires : tuple of (float, float)
        Capacitances of all signal wires, femtofarads: by the router, and as magic extracts them.
    extraction : str
        magic's style of it.
    drc_errors : int
    drc_errors_with_transistors : int or None
        None if the GDS has the cells as their LEF shows them.
    comparison : lvs.Comparison
    timing, timing_without_wires : WireTiming
    vesta : VestaTiming
    simulation, delayed : Simulation or None
        Without delays, and with the delays of cells and wires near the fastest clock.
    power : WirePower or None
        In an inference; None without Icarus, or if the block is no part of a core.
    seconds, cpu_seconds : mapping of float by step
        On the wall, and of processors.
    """

    block: Block
    project: Project
    gates: Implementation
    clock_buffers: list[int]
    routed: Routed
    wires: tuple[float, float]
    extraction: str
    drc_errors: int
    drc_errors_with_transistors: int | None
    comparison: lvs.Comparison
    timing: WireTiming
    timing_without_wires: WireTiming
    vesta: VestaTiming
    simulation: Simulation | None
    delayed: Simulation | None
    power: WirePower | None
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]

    @property
    def is_clean(self) -> bool:
        """No design rule is violated, the netlists match, and no simulation found anything."""
        errors = self.drc_errors + (self.drc_errors_with_transistors or 0)
        return errors == 0 and self.comparison.matches and not self.failures

    @property
    def failures(self) -> list[str]:
        """Lists what the simulations found, a sentence per failure."""
        runs = (self.simulation, self.delayed)
        found = [failure for run in runs if run is not None for failure in run.failures]
        if self.power is not None and (different := self.power.replay.different):
            cycles = f"{different:,} of {self.power.replay.cycles:,} cycles"
            found.append(f"in an inference, outputs are not those of the RTL in {cycles}")
        return found

    @property
    def undefined(self) -> str | None:
        """Says that outputs have no value though the layout is right; None if that is not so.

        Where rules are violated or the netlist differs, a wire may be open, and that is told.
        """
        errors = self.drc_errors + (self.drc_errors_with_transistors or 0)
        failure = None if self.delayed is None else self.delayed.undefined
        if failure is None or errors or not self.comparison.matches:
            return None
        return (
            f"the layout of {self.block.name} equals its netlist, but with delays {failure}:"
            " another --seed does not help, as the netlist or its bench leaves a register without"
            f" a value (log: {self.project.folder / 'delays' / 'test.log'})"
        )

    def figures(self) -> dict[str, Any]:
        """Returns the figures as ``--json`` and the reports have them."""
        pdk, routed = self.gates.mapping.pdk, self.routed
        logic = [cell for cell in routed.cells.values() if pdk.cells.get(cell) is not None]
        area = sum(pdk.cells[cell].area for cell in logic)
        unrouted, extracted = self.wires
        return {
            "block": self.block.name,
            "number_format": self.block.number_format,
            "pdk": self.project.technology.name,
            "drc_errors": self.drc_errors,
            "drc_errors_with_transistors": self.drc_errors_with_transistors,
            "lvs_matches": self.comparison.matches,
            "lvs_differences": self.comparison.differences,
            "area_um2": round(routed.area_um2, 1),
            "width_um": round(routed.width_um, 2),
            "height_um": round(routed.height_um, 2),
            "cells": len(logic),
            "flip_flops": sum(cell in pdk.flip_flops for cell in logic),
            "clock_buffers": self.clock_buffers,
            "fillers": len(routed.cells) - len(logic),
            "nets": routed.nets,
            "cell_area_um2": round(area, 1),
            "cell_area_before_layout_um2": round(self.gates.cell_area, 1),
            "utilisation": round(area / routed.area_um2, 4),
            "wire_length_um": round(routed.wire_length_um, 1),
            "wire_um_by_layer": {k: round(length, 1) for k, length in routed.wire_um.items()},
            "vias": routed.vias,
            "wire_capacitance_pf": {
                "router": round(unrouted / 1000, 4),
                "extracted": round(extracted / 1000, 4),
            },
            "extraction_style": self.extraction,
            "fmax_mhz": round(self.timing.fmax_mhz, 1),
            "fmax_before_wires_mhz": round(self.gates.timing.fmax_mhz, 1),
            "hold_slack_ns": round(self.timing.hold_slack_ns, 4),
            "corner": "typical, the only one of the library",
            "timing": self.timing.figures(),
            "timing_with_clock_tree_without_wires": self.timing_without_wires.figures(),
            "vesta": self.vesta.figures(),
            "simulation": None if self.simulation is None else self.simulation.figures(),
            "simulation_with_delays": self._delayed_figures(),
            "power": None if self.power is None else self.power.figures(),
            "limits": list(self.limits),
            "cpu_seconds": {k: round(seconds, 1) for k, seconds in self.cpu_seconds.items()},
            "seconds": {step: round(seconds, 1) for step, seconds in self.seconds.items()},
        }

    @property
    def limits(self) -> tuple[str, ...]:
        """Lists the limits that the packages set to this layout."""
        return LIMITS if self.drc_errors_with_transistors is not None else (ABSTRACT, *LIMITS)

    def _delayed_figures(self) -> dict[str, Any] | None:
        if self.delayed is None:
            return None
        return {"period_ns": round(needed_period(self.timing), 4), **self.delayed.figures()}

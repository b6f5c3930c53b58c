"""Maps a core, or a piece of one, to a process: its gates, its area by block, its clock."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TargetError
from ..targets import Target
from .areas import BlockArea, block_areas
from .mapping import BLOCK_DEPTH, Mapping, map_design
from .memories import SRAM
from .pdk import Pdk
from .sta import TimedDesign
from .timing import Timing, static_timing

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

TOP = "slipstick"

LACKING = "gates need the Python package {}: pip install 'slipstick[build]'"

Step = Callable[[str], AbstractContextManager[None]]
"""Called with what is being done; it runs inside the context that is returned."""


@dataclass(frozen=True)
class Implementation:
    """Holds a design of gates with its area and timing.

    Parameters
    ----------
    rtlil : str
        What was mapped.
    mapping : Mapping
    blocks : tuple of BlockArea
    timing : Timing
    seconds : float
        Of mapping and timing.
    """

    rtlil: str
    mapping: Mapping
    blocks: tuple[BlockArea, ...]
    timing: Timing
    seconds: float

    @property
    def cell_area(self) -> float:
        """Area of the cells in square micrometres, without memories."""
        return sum(block.cell_area for block in self.blocks)

    @property
    def memory_area(self) -> float:
        """Area of the memories in square micrometres, by the model."""
        return sum(block.memory_area for block in self.blocks)

    def figures(self) -> dict[str, Any]:
        """Returns the figures as ``--json`` and the reports have them."""
        return {
            "pdk": self.mapping.pdk.name,
            "feature_nm": self.mapping.pdk.feature_nm,
            "voltage": self.mapping.pdk.voltage,
            "cells": sum(block.cells for block in self.blocks),
            "flip_flops": sum(block.flip_flops for block in self.blocks),
            "cell_area_um2": round(self.cell_area, 1),
            "memory_bits": sum(block.memory_bits for block in self.blocks),
            "memory_area_um2": round(self.memory_area, 1),
            # below a name of its own: benchmarks take reports with a clock at the top for an FPGA's
            "timing": self.timing.figures(),
            "blocks": [block.figures() for block in self.blocks],
            "cells_by_kind": dict(self.mapping.cells.most_common()),
            "seconds": round(self.seconds, 1),
        }


def implement(
    rtlil: str,
    pdk: Pdk,
    folder: Path,
    *,
    top: str = TOP,
    block_depth: int = BLOCK_DEPTH,
    memories: str = SRAM,
    gated: bool = False,
    step: Step | None = None,
) -> Implementation:
    """Maps a design to a library and finds its fastest clock.

    Parameters
    ----------
    rtlil : str
        A core, an array, an element: ``core_rtlil``, ``component_rtlil``.
    pdk : Pdk
    folder : Path
        For all files; made if it is missing.
    top : str
        Its module.
    block_depth, memories, gated
        As for ``map_design``.
    step : callable

    Raises
    ------
    TargetError
        If a tool is missing or fails, or the design cannot be mapped.
    """
    show = step or (lambda what: nullcontext())
    started = time.monotonic()
    with show(f"mapping to {pdk.name}"):
        mapping = map_design(
            rtlil, top, pdk, folder, block_depth=block_depth, memories=memories, gated=gated
        )
    with show("static timing"):
        timing = static_timing(TimedDesign(mapping))
    blocks = tuple(block_areas(mapping))
    return Implementation(rtlil, mapping, blocks, timing, time.monotonic() - started)


def component_rtlil(component: "Component", top: str) -> str:
    """Returns a component's RTLIL; TargetError if the packages of simulations are missing."""
    try:
        from slipstick_sim.toolchain import convert_to_rtlil
    except ImportError as error:
        raise TargetError(LACKING.format(error.name)) from None
    return convert_to_rtlil(component, top)


def core_rtlil(target: Target) -> str:
    """Returns a target's core as RTLIL; TargetError if the packages of simulations are missing."""
    try:
        from slipstick_sim.verilated.build import accelerator_rtlil
    except ImportError as error:
        raise TargetError(LACKING.format(error.name)) from None
    return accelerator_rtlil(target.configuration, TOP)

"""Energy of an inference on a mapped core: simulated, its activity recorded, its power added up."""

from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.inputs import Samples
from ..errors import TargetError
from ..program import Program
from ..runtime.feeds import random_feeds
from .accesses import MemoryUse, memory_uses
from .clock_gating import with_probes
from .hierarchy import Hierarchy, merge
from .implementation import LACKING, Implementation
from .mapping import BLOCK_DEPTH
from .memory_model import memory_cost
from .power import BlockPower, CellPower, cell_power
from .saif import read_saif

SAIF = "activity.saif"


@dataclass(frozen=True)
class Energy:
    """Holds the energy of one inference at the fastest clock.

    Parameters
    ----------
    program : Program
    cycles : int
        In which the core ran.
    period_ns : float
    cells : CellPower
    memories : tuple of MemoryUse
    memory_leakage_mw : float
        By the model, whose process has fast transistors: told apart, and in no sum.
    outputs : tuple of float
        The codes of the network's first output, or its numbers.
    """

    program: Program
    cycles: int
    period_ns: float
    cells: CellPower
    memories: tuple[MemoryUse, ...]
    memory_leakage_mw: float
    outputs: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Duration of the inference."""
        return self.cycles * self.period_ns * 1e-9

    @property
    def cells_uj(self) -> float:
        """Microjoules of all cells, their leakage included."""
        return self.microjoules(self.cells)

    def microjoules(self, cells: BlockPower | CellPower) -> float:
        """Returns the energy of a block's cells, or of all, with their leakage."""
        return (cells.dynamic_mw + cells.leakage_mw) * self.seconds * 1e3

    def clock_uj(self, cells: BlockPower | CellPower) -> float:
        """Returns the energy of their clock pins and clock gates, microjoules."""
        return cells.clock_mw * self.seconds * 1e3

    @property
    def memories_uj(self) -> float:
        """Microjoules of the memories' accesses."""
        return sum(use.cycle_pj for use in self.memories) * self.cycles * 1e-6

    @property
    def total_uj(self) -> float:
        """Microjoules of cells and accesses."""
        return self.cells_uj + self.memories_uj

    @property
    def mac_pj(self) -> float:
        """Picojoules of each multiply-accumulate of the network."""
        return self.total_uj * 1e6 / self.program.macs

    def figures(self) -> dict[str, Any]:
        """As reports have it."""
        memories = defaultdict[str, list[float]](lambda: [0.0, 0.0, 0.0])
        for use in self.memories:
            entry = memories[f"{use.macro.words}x{use.macro.bits}"]
            entry[0] += use.reads
            entry[1] += use.writes
            entry[2] += use.cycle_pj
        return {
            "network": self.program.name,
            "macs": self.program.macs,
            "cycles": self.cycles,
            "seconds_of_inference": rounded(self.seconds),
            "activity_matched": self.cells.matched,
            "activity_sources": self.cells.sources,
            "cell_dynamic_mw": rounded(self.cells.dynamic_mw),
            "cell_clock_mw": rounded(self.cells.clock_mw),
            "cell_leakage_mw": rounded(self.cells.leakage_mw),
            "memory_access_mw": rounded(self.memories_uj / self.seconds * 1e-3),
            "memory_leakage_mw": rounded(self.memory_leakage_mw),
            "cells_uj": rounded(self.cells_uj),
            "memories_uj": rounded(self.memories_uj),
            "inference_uj": rounded(self.total_uj),
            "mac_pj": rounded(self.mac_pj),
            "first_output": [rounded(value) for value in self.outputs],
            "power_by_block": [
                {
                    "block": block.name,
                    "dynamic_mw": rounded(block.dynamic_mw),
                    "clock_mw": rounded(block.clock_mw),
                    "leakage_mw": rounded(block.leakage_mw),
                    "mac_pj": rounded(block.dynamic_mw * self.seconds * 1e9 / self.program.macs),
                }
                for block in self.cells.blocks
            ],
            "memory_accesses": [
                {
                    "shape": shape,
                    "reads_per_cycle": rounded(reads),
                    "writes_per_cycle": rounded(writes),
                    "pj_per_cycle": rounded(energy),
                }
                for shape, (reads, writes, energy) in sorted(memories.items())
            ],
        }


def inference_energy(
    done: Implementation, program: Program, samples: Samples | None, *, seed: int = 0
) -> Energy:
    """Runs one inference on the compiled gateware and asks what it takes.

    Parameters
    ----------
    done : Implementation
        Of a core.
    program : Program
        For that core.
    samples : Samples or None
        Of which the first is taken; None for a seeded random input.
    seed : int

    Raises
    ------
    TargetError, DeviceError
        If a package or tool is missing or fails.
    """
    folder, mapping = done.mapping.folder, done.mapping
    gateware = merge(done.rtlil, mapping.top, initial_values=True)
    cycles, outputs = _record(gateware, program, samples, seed, folder / SAIF, gated=mapping.gated)
    recording = read_saif(folder / SAIF, mapping.top)
    period = done.timing.period_ns
    uses = memory_uses(gateware, mapping.macros, recording, mapping.pdk)
    leakage = sum(memory_cost(macro, mapping.pdk).leakage_mw for macro in mapping.macros)
    cells = cell_power(mapping, recording, period)
    return Energy(program, cycles, period, cells, tuple(uses), leakage, outputs)


def _record(
    gateware: Hierarchy,
    program: Program,
    samples: Samples | None,
    seed: int,
    path: Path,
    *,
    gated: bool,
) -> tuple[int, tuple[float, ...]]:
    """Simulates an inference; its cycles, and the codes of its first output."""
    try:
        from slipstick_sim.toolchain import ToolError
        from slipstick_sim.verilated.build import activity_library
    except ImportError as error:
        raise TargetError(LACKING.format(error.name)) from None
    from ..devices.simulation import SimulationDevice
    from ..session import InferenceSession

    try:
        if gated:
            rtlil = with_probes(gateware.rtlil(gateware.blocks(BLOCK_DEPTH)), gateware.top)
        else:
            rtlil = gateware.rtlil()
        library = activity_library(rtlil, gateware.top)
    except ToolError as error:
        raise TargetError(f"the simulation of {gateware.top}: {error}") from error
    feeds = random_feeds(program, seed) if samples is None else {program.inputs[0]: samples.x[:1]}
    path.unlink(missing_ok=True)
    with closing(SimulationDevice(program.hardware, library)) as device:
        session = InferenceSession(program, device)
        with device.recording(path):
            outputs = session.run(None, feeds)
        cycles = session.last_cycles or 0
    return cycles, tuple(outputs[0].ravel().tolist())


def rounded(value: float) -> float:
    """Six digits of it, as reports have them."""
    return float(f"{value:.6g}")

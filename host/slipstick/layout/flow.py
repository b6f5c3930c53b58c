"""The flow from a block to its layout: synthesis, placement, routing, checks, timing."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from .. import toolchain
from ..asic.implementation import Implementation, implement
from ..asic.memories import FLIP_FLOPS
from ..errors import TargetError
from . import lvs, magic
from .blocks import Block
from .clock_tree import insert_clock_tree
from .def_file import read_def
from .delays import simulate_delays
from .inference import has_inference, record_inference
from .netlist import GateNetlist, read_gates
from .parasitics import Wire, read_wires
from .power import WirePower, power_of
from .project import Project
from .replay import replay
from .result import Layout
from .simulation import Simulation, layout_sources, simulate
from .spef import spef
from .spice import Extracted, layout_verilog, read_spice
from .technology import Technology, find_programs
from .timing import WireTiming, time_layout
from .vesta import run_vesta

SEED = 12345
"""Seed of the placement; qflow's own."""

_FLATTEN = """read_json netlist.json
setattr -mod -unset keep_hierarchy *
flatten -noscopeinfo
write_json flat.json
"""

Step = Callable[[str], AbstractContextManager[None]]
"""Called with what is being done; it runs inside the context that is returned."""


class _Clock:
    """Shows each step and notes how long it took, on the wall and of processors."""

    def __init__(self, show: Step | None) -> None:
        self._show = show or (lambda what: nullcontext())
        self.seconds, self.cpu_seconds = dict[str, float](), dict[str, float]()

    @contextmanager
    def __call__(self, name: str, what: str) -> Iterator[None]:
        begin, used = time.monotonic(), _cpu_seconds()
        with self._show(what):
            yield
        self.seconds[name] = time.monotonic() - begin
        self.cpu_seconds[name] = _cpu_seconds() - used


def _cpu_seconds() -> float:
    """Returns processor time of this process and of the programs that it has called."""
    return sum(os.times()[:4])


def lay_out(
    block: Block,
    technology: Technology,
    folder: Path,
    *,
    seed: int = SEED,
    density: float | None = None,
    simulated: bool = True,
    cells_gds: Path | None = None,
    step: Step | None = None,
) -> Layout:
    """Makes the layout of a block.

    Parameters
    ----------
    block : Block
    technology : Technology
    folder : Path
        For all files; those of an earlier layout are removed.
    seed : int
        Of the placement.
    density : float
        Share of the rows that cells may take; by default the technology's.
    simulated : bool
        Whether the netlist after layout is simulated against the golden model.
    cells_gds : Path
        The technology's cells with their transistors, for the GDS and another check.
    step : callable
        Shows what is being done.

    Raises
    ------
    TargetError
        If a program is missing or fails, or if outputs have no value in the simulation though the
        layout is right. Violated rules and differing netlists are in the result.
    """
    folder = folder.resolve()
    if any(character.isspace() for character in str(folder)):
        raise TargetError(f"--output must have no spaces, which qflow's scripts divide: {folder}")
    flow = _Flow(block, technology, folder, _Clock(step))
    flow.synthesise()
    flow.place_and_route(seed, technology.density if density is None else density)
    checks = flow.check(cells_gds)
    times = flow.time()
    simulation, delayed = flow.simulate(times["timing"]) if simulated else (None, None)
    power = None if delayed is None else flow.power(times["timing"])
    done = Layout(
        block=block,
        project=flow.project,
        gates=flow.gates,
        clock_buffers=flow.clock_buffers,
        routed=read_def(flow.project.file("layout", ".def").read_text("utf-8")),
        wires=flow.capacitances,
        simulation=simulation,
        delayed=delayed,
        power=power,
        seconds=flow.clock.seconds,
        cpu_seconds=flow.clock.cpu_seconds,
        **checks,
        **times,
    )
    if done.undefined is not None:
        raise TargetError(done.undefined)
    return done


class _Flow:
    """The steps, each of which uses what those before it have made."""

    gates: Implementation
    netlist: GateNetlist
    clock_buffers: list[int]
    found: Extracted
    wires: list[Wire]

    def __init__(self, block: Block, technology: Technology, folder: Path, clock: _Clock) -> None:
        self._programs = find_programs(technology)
        self._block, self._technology, self._folder = block, technology, folder
        self._pdk = technology.pdk()
        self.clock = clock
        self.project = Project(folder / "qflow", block.top, technology)

    def synthesise(self) -> None:
        """Maps the block as ``slipstick asic`` does, takes its hierarchy out, adds a clock tree."""
        block, gates = self._block, self._folder / "gates"
        with self.clock("synthesis", f"synthesis for {self._technology.name}"):
            self.gates = implement(
                *(block.rtlil(block.top), self._pdk, gates),
                top=block.top,
                block_depth=0,
                memories=FLIP_FLOPS,
            )
            (gates / "flatten.ys").write_text(_FLATTEN, "utf-8")
            command = [toolchain.YOSYS.find(), "-q", "-s", "flatten.ys"]
            toolchain.run("flattening", command, folder=gates, log=gates / "flatten.log")
        module = json.loads((gates / "flat.json").read_text("utf-8"))["modules"][block.top]
        self.netlist = read_gates(module, block.top, self._pdk, self._technology.buffer)
        self.clock_buffers = insert_clock_tree(self.netlist, self._technology, self._pdk)

    def place_and_route(self, seed: int, density: float | None) -> None:
        """Places and routes by qflow's scripts."""
        self.project.write(self.netlist, self._programs, seed, density)
        with self.clock("placement", f"placement of {len(self.netlist.gates):,} cells"):
            self.project.place()
        with self.clock("routing", f"routing of {len(self.netlist.nets):,} nets"):
            self.project.route()

    def check(self, cells_gds: Path | None) -> dict[str, Any]:
        """Writes GDS and SPICE; checks design rules, and the layout against the netlist."""
        project, program = self.project, self._programs["magic"]
        with self.clock("extraction", "GDS and extraction"):
            extraction = magic.extract(project, program)
        with self.clock("drc", "design rules"):
            errors, inside = magic.count_drc_errors(project, program), None
            if cells_gds is not None:
                inside = magic.add_transistors(project, program, cells_gds)
        with self.clock("lvs", "layout against netlist"):
            comparison = lvs.compare(project, self._programs["netgen-lvs"])
        spice = project.file("layout", "_capacitances.spice").read_text("utf-8")
        self.found = read_spice(spice, project.name)
        self.wires = read_wires(project.file("layout", ".rc").read_text("utf-8"))
        return {
            "extraction": extraction,
            "drc_errors": errors,
            "drc_errors_with_transistors": inside,
            "comparison": comparison,
        }

    def time(self) -> dict[str, Any]:
        """Setup and hold with wires and without, both with the clock's tree; vesta beside them."""
        folder, name = self.project.folder / "timing", self.project.name
        folder.mkdir(exist_ok=True)
        inputs, supplies = self.netlist.bits("input"), self._technology.supplies
        verilog = layout_verilog(self.found, inputs, supplies)
        (folder / f"{name}.v").write_text(verilog, "utf-8")
        text = spef(self.wires, self.found, self._is_output, frozenset(inputs))
        (folder / f"{name}.spef").write_text(text, "utf-8")
        with self.clock("timing", "timing with wires"):
            sta = self._programs["sta"]
            return {
                "timing": time_layout(folder, name, self._pdk, sta, wires=True),
                "timing_without_wires": time_layout(folder, name, self._pdk, sta, wires=False),
                "vesta": run_vesta(self.project, self._pdk),
            }

    def simulate(self, timing: WireTiming) -> tuple[Simulation, Simulation | None]:
        """Runs the bench on the layout without delays and, if Icarus is there, with them."""
        project, ports, pdk = self.project, self.netlist.ports, self._pdk
        sources = layout_sources(self.found, ports, self._technology.supplies, pdk)
        with self.clock("simulation", "the layout's netlist against the golden model"):
            plain = simulate(self._block, ports, sources, project.folder)
        if shutil.which("iverilog") is None:
            return plain, None
        with self.clock("simulation_with_delays", "the same with delays"):
            delayed = simulate_delays(
                *(self._block, ports, *self._delayed_netlist()),
                *(pdk, timing, project.folder / "delays"),
            )
        return plain, delayed

    def power(self, timing: WireTiming) -> WirePower | None:
        """Replays an inference on the layout; its power; None if the block is in no core."""
        if not has_inference(self._block):
            return None
        project, ports, folder = self.project, self.netlist.ports, self.project.folder / "power"
        with self.clock("inference", "an inference on the RTL of a core with the block"):
            values = record_inference(self._block, ports, folder / "inference.vcd")
        with self.clock("power", "the inference on the layout, and its power"):
            done = replay(
                *(values, project.name, ports, *self._delayed_netlist()),
                *(self._pdk, timing, folder),
            )
            return power_of(
                *(values.network, done, self.found, project.name, self._pdk),
                *(self._programs["sta"], project.folder / "timing"),
            )

    def _delayed_netlist(self) -> tuple[str, str, set[str]]:
        """The layout's Verilog, its delays, and the cells in it."""
        netlist, sdf = (
            (self.project.folder / "timing" / f"{self.project.name}{ending}").read_text("utf-8")
            for ending in (".v", ".sdf")
        )
        found = {instance.cell for instance in self.found.instances.values()}
        return netlist, sdf, found & set(self._pdk.cells)

    @property
    def capacitances(self) -> tuple[float, float]:
        """Sums up all signal nets, in femtofarads: by the router, and by magic."""
        signals = {net for it in self.found.instances.values() for net in it.nets.values()}
        signals -= set(self._technology.supplies)
        routed = sum(wire.tree.total_picofarads for wire in self.wires) * 1000
        return routed, sum(self.found.capacitances.get(net, 0.0) for net in signals)

    def _is_output(self, instance: str, pin: str) -> bool:
        return pin in self._pdk.cells[self.found.instances[instance].cell].outputs

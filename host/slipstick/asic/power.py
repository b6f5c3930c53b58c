"""Power of a mapped design, with the activity that a simulation recorded."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .. import toolchain as tools
from ..errors import TargetError
from . import opensta
from .areas import walk_blocks
from .clock_gating import probe_name
from .gate_power import GatePower
from .loads import LoadCounter, outer_loads
from .mapping import Mapping as MappedDesign
from .power_netlist import CLOCK, GatedClock, PowerNetlist, Source, power_netlist
from .saif import Activity, Recording

_PROCESSES = 2
_STILL = Activity(0.0, 0.0)


@dataclass(frozen=True)
class BlockPower:
    """A block's own cells, or those of all alike; blocks within have entries of their own.

    Parameters
    ----------
    name : str
        As ``BlockArea`` has it.
    dynamic_mw, leakage_mw : float
        Of cells.
    clock_mw : float
        Of ``dynamic_mw`` what clocks take, while all else rests: pins of registers, gates.
    """

    name: str
    dynamic_mw: float = 0.0
    leakage_mw: float = 0.0
    clock_mw: float = 0.0


@dataclass(frozen=True)
class CellPower:
    """Power of a design's cells.

    Parameters
    ----------
    blocks : tuple of BlockPower
        The largest first.
    matched, sources : int
        Registers and ports of blocks whose activity the recording has, of how many. The others
        take the average of those in their block.
    """

    blocks: tuple[BlockPower, ...]
    matched: int
    sources: int

    @property
    def dynamic_mw(self) -> float:
        """Adds the dynamic power of all blocks."""
        return sum(block.dynamic_mw for block in self.blocks)

    @property
    def leakage_mw(self) -> float:
        """Adds the leakage of all blocks."""
        return sum(block.leakage_mw for block in self.blocks)

    @property
    def clock_mw(self) -> float:
        """Adds the power that clocks take in all blocks."""
        return sum(block.clock_mw for block in self.blocks)


def cell_power(mapping: MappedDesign, recording: Recording, period_ns: float) -> CellPower:
    """Asks OpenSTA for the power of each block.

    Every block is looked at alone: its registers and what comes into it change as often as they
    did in the simulation, on the average of all alike; OpenSTA makes of that the activity of the
    logic between. Clock pins change twice a cycle, those behind a gate twice in the cycles in which
    its enable is 1. There are neither wires nor buffers of clocks.

    Parameters
    ----------
    mapping : Mapping
    recording : Recording
        Of the same gateware.
    period_ns : float
        The clock's.

    Raises
    ------
    TargetError
        If OpenSTA is missing or fails.
    """
    program = tools.OPENSTA.find()
    paths = defaultdict[str, list[tuple[str, str]]](list)
    for path, family, module in walk_blocks(mapping):
        paths[module].append((path, family))
    cuts = _cut(mapping)
    (mapping.folder / "power").mkdir(exist_ok=True)
    totals = defaultdict[str, list[float]](lambda: [0.0, 0.0, 0.0])
    matched = sources = 0
    runs, saved = dict[str, tuple[list[str], list[str]]](), dict[str, float]()
    gate_power = GatePower(program, mapping, period_ns)
    for module, cut in cuts.items():
        places = [path for path, _ in paths[module]]
        activities = [_mean(source, places, recording) for source in cut.sources]
        matched += len(places) * sum(activity is not None for activity in activities)
        sources += len(places) * len(activities)
        saved[module] = gate_power.saved_mw(
            [(gate.cells, _rate(gate, places, recording)) for gate in cut.gates]
        )
        still: list[Activity | None] = [_STILL] * len(activities)
        runs[module] = (
            _commands(module, cut, activities, mapping, period_ns),
            _commands(module, cut, still, mapping, period_ns),
        )

    def run(module: str) -> tuple[float, float, float]:
        busy, still = (_run(program, mapping, module, cuts[module], it) for it in runs[module])
        dynamic, leakage = busy
        return dynamic - saved[module], leakage, still[0] - saved[module]

    with ThreadPoolExecutor(_PROCESSES) as pool:
        for module, powers in zip(runs, pool.map(run, runs), strict=True):
            for _, family in paths[module]:
                totals[family] = [sum(pair) for pair in zip(totals[family], powers, strict=True)]
    blocks = [BlockPower(name, *powers) for name, powers in totals.items()]
    blocks.sort(key=lambda block: -block.dynamic_mw)
    return CellPower(tuple(blocks), matched, sources)


def _cut(mapping: MappedDesign) -> dict[str, PowerNetlist]:
    """Each module that has cells, alone."""
    design, modules = mapping.design, list(mapping.blocks)
    counter, nets = LoadCounter(design, mapping.pdk), {}
    for module in modules:
        nets[module] = counter.nets(module)
        counter.remember(module, nets[module])
    outside = outer_loads(design, modules, mapping.top, nets)
    return {
        module: power_netlist(
            module, design["modules"][module], nets[module], outside[module], mapping.pdk
        )
        for module in modules
        if mapping.blocks[module].cells
    }


def _mean(source: Source, paths: Sequence[str], recording: Recording) -> Activity | None:
    """A source's activity on the average of a block's instances; None if none was recorded."""
    found = [
        activity for path in paths if (activity := _recorded(source, path, recording)) is not None
    ]
    if not found:
        return None
    return Activity(
        sum(activity.changes for activity in found) / len(found),
        sum(activity.high for activity in found) / len(found),
    )


def _rate(gate: GatedClock, paths: Sequence[str], recording: Recording) -> float:
    """Share of the cycles in which a gate's enable is 1; all, if it was not recorded."""
    found = list[float]()
    for path in paths:
        for names in gate.registers:
            probes = ((f"{path}.{name}" if path else name, bit) for name, bit in names)
            known = (recording.of(probe_name(name), bit) for name, bit in probes)
            if (activity := next((one for one in known if one is not None), None)) is not None:
                found.append(activity.high)
                break
        else:
            found.append(1.0)
    return sum(found) / len(found)


def _recorded(source: Source, path: str, recording: Recording) -> Activity | None:
    for name, bit in source.names:
        if (found := recording.of(f"{path}.{name}" if path else name, bit)) is not None:
            return found
    return None


def _commands(
    module: str,
    cut: PowerNetlist,
    activities: Sequence[Activity | None],
    mapping: MappedDesign,
    period_ns: float,
) -> list[str]:
    """OpenSTA's script for one block."""
    known = [activity for activity in activities if activity is not None]
    count = max(1, len(known))
    mean = Activity(
        sum(activity.changes for activity in known) / count,
        sum(activity.high for activity in known) / count,
    )
    port = f" [get_ports {CLOCK}]" if cut.clocked else ""
    commands = [
        "read_liberty ../cells.lib",
        f"read_verilog {module}.v",
        f"link_design {module}",
        f"create_clock -name clock -period {period_ns:.6f}{port}",
    ]
    for output, pins in cut.loads.items():
        load = pins * mapping.pdk.pin_capacitance
        commands.append(f"set_load {load:.6g} [get_ports {output}]")
    for source, found in zip(cut.sources, activities, strict=True):
        commands.append(_activity(source.port, found or mean))
    return [*commands, "report_power -digits 8"]


def _activity(port: str, activity: Activity) -> str:
    return (
        f"set_power_activity -input_ports [get_ports {port}]"
        f" -activity {activity.changes:.6g} -duty {activity.high:.6g}"
    )


def _run(
    program: str, mapping: MappedDesign, module: str, cut: PowerNetlist, commands: Sequence[str]
) -> tuple[float, float]:
    """Dynamic power and leakage of one block, milliwatts."""
    folder = mapping.folder / "power"
    (folder / f"{module}.v").write_text(cut.verilog, "utf-8")
    script = folder / f"{module}.tcl"
    groups = opensta.GROUP.findall(opensta.run(program, f"power of {module}", commands, script))
    if len(groups) != 2:
        log = script.with_suffix(".log")
        raise TargetError(f"OpenSTA gave no power of {module} (the whole log: {log})")
    dynamic = sum(float(internal) + float(switching) for _, internal, switching, _, _ in groups)
    leakage = sum(float(leaking) for _, _, _, leaking, _ in groups)
    return 1000 * dynamic, 1000 * leakage

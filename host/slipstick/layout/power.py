"""Power of a routed block in an inference: OpenSTA, with the wires and what each net did."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..asic import opensta
from ..asic.energy import rounded
from ..asic.pdk import Pdk
from ..asic.saif import Activity
from ..errors import TargetError
from .netlist import CLOCK
from .replay import Replay
from .spice import Extracted, identifier

_LOAD = """read_liberty cells.lib
read_verilog {name}.v
link_design {name}
create_clock -name clock -period {period:.6f} [get_ports {clock}]
set_propagated_clock [get_clocks clock]
proc changes {{pin activity duty}} {{
  sta::set_power_pin_activity [get_pins $pin] $activity $duty
}}"""

_NEVER = 1e-12
"""Changes per cycle of a net that rests: 0 stands for an activity that is not known."""


@dataclass(frozen=True)
class WirePower:
    """Power of a routed block while an inference runs, at the fastest clock of its ports.

    Parameters
    ----------
    network : str
        Of which one inference ran.
    replay : Replay
    dynamic_mw, clock_mw, leakage_mw : float
        ``clock_mw`` is what the clock's tree and the registers' clock pins take of ``dynamic_mw``.
    without_wires_mw : float
        ``dynamic_mw`` if pins alone were loads.
    changes_per_cycle : float
        Of a net on the average, the clock's left out.
    """

    network: str
    replay: Replay
    dynamic_mw: float
    clock_mw: float
    leakage_mw: float
    without_wires_mw: float
    changes_per_cycle: float

    def figures(self) -> dict[str, Any]:
        """Returns the figures as reports have them."""
        period = self.replay.period_ns
        return {
            "network": self.network,
            "cycles": self.replay.cycles,
            "cycles_that_differ": self.replay.different,
            "period_ns": round(period, 4),
            "dynamic_mw": rounded(self.dynamic_mw),
            "clock_mw": rounded(self.clock_mw),
            "leakage_mw": rounded(self.leakage_mw),
            "dynamic_without_wires_mw": rounded(self.without_wires_mw),
            # milliwatts times nanoseconds
            "pj_per_cycle": rounded((self.dynamic_mw + self.leakage_mw) * period),
            "changes_per_cycle": rounded(self.changes_per_cycle),
        }


def power_of(
    network: str, done: Replay, found: Extracted, name: str, pdk: Pdk, program: str, folder: Path
) -> WirePower:
    """Asks OpenSTA for the power of a block.

    Each pin changes as often as its net did in the replay. The clock's nets change twice per cycle.

    Parameters
    ----------
    network : str
    done : Replay
    found : Extracted
        The layout.
    name : str
    pdk : Pdk
    program : str
        OpenSTA.
    folder : Path
        With ``NAME.v``, ``NAME.spef`` and ``cells.lib``, as ``time_layout`` leaves it.

    Raises
    ------
    TargetError
        If OpenSTA fails, or a net's activity is not known.
    """
    clocks = clock_nets(found, pdk)
    pins = list(_pins(found, pdk, clocks, done.nets))
    signals = {net for _, net in pins}
    loads = _LOAD.format(name=name, period=done.period_ns, clock=CLOCK).splitlines()

    def ask(step: str, *, wires: bool, moves: bool) -> tuple[float, float]:
        """Dynamic power and leakage, milliwatts."""
        commands = [*loads, *([f"read_spef {name}.spef"] if wires else [])]
        for pin, net in pins:
            activity = done.nets[net]
            changes = max(activity.changes, _NEVER) if moves else _NEVER
            commands.append(f"changes {pin} {changes:.6g} {activity.high:.6g}")
        commands.append("report_power -digits 8")
        script = folder / f"{step}.tcl"
        groups = opensta.GROUP.findall(opensta.run(program, f"power of {name}", commands, script))
        if len(groups) != 2:
            log = script.with_suffix(".log")
            raise TargetError(f"OpenSTA gave no power of {name} (the whole log: {log})")
        dynamic = sum(float(internal) + float(switching) for _, internal, switching, _, _ in groups)
        leakage = sum(float(leaking) for _, _, _, leaking, _ in groups)
        return 1000 * dynamic, 1000 * leakage

    dynamic, leakage = ask("power", wires=True, moves=True)
    clock, _ = ask("power_of_clock", wires=True, moves=False)
    without_wires, _ = ask("power_without_wires", wires=False, moves=True)
    changes = sum(done.nets[net].changes for net in signals) / max(1, len(signals))
    return WirePower(network, done, dynamic, clock, leakage, without_wires, changes)


def clock_nets(found: Extracted, pdk: Pdk) -> set[str]:
    """Nets from the clock's port to the registers, through the buffers of its tree."""
    loads = dict[str, list[str]]()
    for name, instance in found.instances.items():
        if (cell := pdk.cells.get(instance.cell)) is not None and not cell.state:
            for pin in cell.inputs:
                loads.setdefault(instance.nets[pin], []).append(name)
    nets, left = set[str](), [CLOCK]
    while left:
        net = left.pop()
        nets.add(net)
        for name in loads.get(net, []):
            instance = found.instances[name]
            left += [instance.nets[pin] for pin in pdk.cells[instance.cell].outputs]
    return nets


def _pins(
    found: Extracted, pdk: Pdk, clocks: set[str], nets: Mapping[str, Activity]
) -> Iterator[tuple[str, str]]:
    """Each pin of the cells with its net, as Verilog calls them; the clock's are left out."""
    for name, instance in found.instances.items():
        cell = pdk.cells.get(instance.cell)
        if cell is None:
            continue
        for pin in (*cell.inputs, *cell.outputs):
            net = instance.nets.get(pin)
            if net is None or net in clocks:
                continue
            plain = identifier(net)
            if plain not in nets:
                raise TargetError(f"the replay must tell of net {plain}, and does not")
            yield f"{identifier(name)}/{pin}", plain

"""Power of a routed block in an inference: OpenSTA, with the wires and what each net did."""

import re
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
read_verilog {file}.v
link_design {name}
create_clock -name clock -period {period:.6f} [get_ports {clock}]
set_propagated_clock [get_clocks clock]
set_input_delay 0 -clock clock [get_ports {given}*]
proc changes {{pin activity duty}} {{
  sta::set_power_pin_activity [get_pins $pin] $activity $duty
}}"""

_GIVEN = "given__"
"""Begins the names of registers that stand before the block's inputs, and of their inputs."""

_FILE = "power"
"""The netlist with them, and its wires."""

_STILL = Activity(0.0, 0.0)
_NEVER = 1e-12
"""Changes per cycle of a net that rests: 0 stands for an activity that is not known."""

_ROW = re.compile(r"^ *(\S+) +(\S+) +(\S+) +\S+ +(\w+)$", re.M)
"""Row of a report by instance: internal power, switching, leakage, their sum, the instance."""


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

    OpenSTA 2.0 keeps what it is told of a pin, except behind inputs: from there to the first
    registers it derives the activity itself. So each input gets a register before it, whose own
    power does not count.

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
    inputs = _write_netlist(folder, name, pdk)
    loads = _LOAD.format(
        file=_FILE, name=name, period=done.period_ns, clock=CLOCK, given=_GIVEN
    ).splitlines()
    register = pdk.plain_flip_flop
    own = {f"{_GIVEN}{port}" for port in inputs}

    def ask(step: str, *, wires: bool, moves: bool) -> tuple[float, float]:
        """Dynamic power and leakage, milliwatts."""
        commands = [*loads, *([f"read_spef {_FILE}.spef"] if wires else [])]
        given = [(f"{instance}/{register.data_pin}", "") for instance in sorted(own)]
        given += [(f"{_GIVEN}{port}/{register.state_pin}", port) for port in inputs]
        for pin, net in [*given, *pins]:
            activity = done.nets.get(net, _STILL)
            changes = max(activity.changes, _NEVER) if moves else _NEVER
            commands.append(f"changes {pin} {changes:.6g} {activity.high:.6g}")
        commands.append("report_power -instances [get_cells *] -digits 8")
        script = folder / f"{step}.tcl"
        rows = _ROW.findall(opensta.run(program, f"power of {name}", commands, script))
        counted = [row[:3] for row in rows if row[3] not in own]
        cells = sum(instance.cell in pdk.cells for instance in found.instances.values())
        if len(counted) != cells or len(rows) != cells + len(own):
            log = script.with_suffix(".log")
            raise TargetError(f"OpenSTA gave no power of {name} (the whole log: {log})")
        dynamic = sum(float(internal) + float(switching) for internal, switching, _ in counted)
        return 1000 * dynamic, 1000 * sum(float(leakage) for _, _, leakage in counted)

    dynamic, leakage = ask("power", wires=True, moves=True)
    clock, _ = ask("power_of_clock", wires=True, moves=False)
    without_wires, _ = ask("power_without_wires", wires=False, moves=True)
    changes = sum(done.nets[net].changes for net in signals) / max(1, len(signals))
    return WirePower(network, done, dynamic, clock, leakage, without_wires, changes)


def _write_netlist(folder: Path, name: str, pdk: Pdk) -> list[str]:
    """Writes netlist and wires with a register before each input; returns the inputs."""
    text, wires = ((folder / f"{name}{ending}").read_text("utf-8") for ending in (".v", ".spef"))
    inputs = [port for port in re.findall(r"^  input (\w+);$", text, re.M) if port != CLOCK]
    register = pdk.plain_flip_flop
    registers = list[str]()
    for port in inputs:
        given = f"{_GIVEN}{port}"
        # in the list of ports and in the declaration; the net keeps its name
        text = re.sub(rf"(?<=[(,] ){port}(?=[,)])|(?<=\(){port}(?=[,)])", given, text, count=1)
        text = text.replace(f"  input {port};\n", f"  input {given};\n  wire {port};\n", 1)
        nets = {register.data_pin: given, register.clock_pins[0]: CLOCK, register.state_pin: port}
        joined = ", ".join(f".{pin}({net})" for pin, net in nets.items())
        registers.append(f"  {register.name} {given} ({joined});\n")
        output = f"{given}:{register.state_pin}"
        wires = wires.replace(f"*P {port} I\n", f"*I {output} O\n")
        wires = re.sub(rf"^(\d+ (?:\S+ )?){port}(?= )", rf"\g<1>{output}", wires, flags=re.M)
    end = text.rindex("endmodule")
    (folder / f"{_FILE}.v").write_text(text[:end] + "".join(registers) + text[end:], "utf-8")
    (folder / f"{_FILE}.spef").write_text(wires, "utf-8")
    return inputs


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

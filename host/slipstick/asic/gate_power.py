"""Power of clock gates, and what they save: each of their cells is measured once, alone."""

from collections.abc import Iterable
from functools import cache, cached_property

from . import opensta
from .cell_models import instance_text
from .clock_gating import ClockGate, find_clock_gate
from .mapping import Mapping as MappedDesign

_OUTPUT = "o"


class GatePower:
    """Measures the cells of a library as OpenSTA does, at one clock.

    Parameters
    ----------
    program : str
        OpenSTA.
    mapping : Mapping
        Whose library and folder are taken.
    period_ns : float
    """

    def __init__(self, program: str, mapping: MappedDesign, period_ns: float) -> None:
        self._program, self._mapping, self._period = program, mapping, period_ns
        self._cell = cache(self._measure)

    def saved_mw(self, gates: Iterable[tuple[tuple[str, ...], float]]) -> float:
        """Returns the power that gates save, less what they take themselves; milliwatts.

        Parameters
        ----------
        gates : iterable of (cells, rate)
            The registers behind each, and the share of the cycles in which its enable is 1.
        """
        return sum(self._saved(cells, rate) for cells, rate in gates)

    @cached_property
    def _gate(self) -> ClockGate:
        return find_clock_gate(self._mapping.pdk)

    def _saved(self, cells: tuple[str, ...], rate: float) -> float:
        gate, pdk = self._gate, self._mapping.pdk
        saved = (1 - rate) * sum(self._cell(cell) for cell in cells)
        registers = (pdk.cells[cell] for cell in cells)
        load = sum(register.pin_loads[register.clock_pins[0]] for register in registers)
        # the latch's clock never rests, nor does its inverter; the AND does
        fixed = self._cell(gate.latch.name)
        if gate.inverter is not None:
            fixed += self._cell(gate.inverter.name, gate.latch.capacitance)
        return saved - fixed - rate * self._cell(gate.conjunction.name, round(load, 6))

    def _measure(self, name: str, load: float = 0.0) -> float:
        """Measures a cell whose clock pin, or else its first, is the clock; other inputs are 1."""
        cell = self._mapping.pdk.cells[name]
        clocked = (*cell.clock_pins, *cell.inputs)[0]
        output = cell.state_pin if cell.state else next(iter(cell.outputs))
        pins = {pin: "clk" if pin == clocked else "1'b1" for pin in cell.inputs} | {output: _OUTPUT}
        folder = self._mapping.folder / "power"
        block = f"gate_{name}"
        (folder / f"{block}.v").write_text(
            f"module {block} (clk, {_OUTPUT});\n  input clk;\n  output {_OUTPUT};\n"
            f"  {instance_text(name, 'u', pins)}\nendmodule\n",
            "utf-8",
        )
        commands = [
            "read_liberty ../cells.lib",
            f"read_verilog {block}.v",
            f"link_design {block}",
            f"create_clock -name clock -period {self._period:.6f} [get_ports clk]",
            f"set_load {load:.6g} [get_ports {_OUTPUT}]",
            "report_power -digits 8",
        ]
        said = opensta.run(self._program, f"power of {block}", commands, folder / f"{block}.tcl")
        groups = opensta.GROUP.findall(said)
        watts = [float(internal) + float(switching) for _, internal, switching, _, _ in groups]
        return 1000 * sum(watts)

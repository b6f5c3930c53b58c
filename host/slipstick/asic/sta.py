"""OpenSTA: a mapped design loaded into it, commands run, names of its instances understood."""

from collections.abc import Sequence
from dataclasses import dataclass

from .. import toolchain as tools
from ..errors import TargetError
from . import opensta
from .macro_liberty import macro_liberty
from .mapping import Mapping
from .timing_netlist import port_name, timing_netlist

CLOCK_PORT = "clk"

_LOAD = """read_liberty cells.lib
{macros}read_verilog timing.v
link_design {top}
create_clock -name clock -period {period} [get_ports {clock}]
set_cmd_units -time ns -power W
"""


@dataclass(frozen=True)
class Place:
    """Place of an instance in the netlist, and its name.

    Parameters
    ----------
    block : tuple of str
        The blocks around it, from the top's to the innermost, by their instances' names.
    name : str
        A register's, with its bit; a macro's; "" of a gate.
    """

    block: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        block = ".".join(self.block) or "top"
        return f"{block}: {self.name}" if self.name else block


class TimedDesign:
    """A mapped design as OpenSTA reads it; its files lie in the mapping's folder.

    Parameters
    ----------
    mapping : Mapping
        Of a design whose clock is the port ``CLOCK_PORT``.

    Raises
    ------
    TargetError
        If OpenSTA is missing, or the design has no such port.
    """

    def __init__(self, mapping: Mapping) -> None:
        self._program = tools.OPENSTA.find()
        self._mapping, self._folder = mapping, mapping.folder
        design = mapping.design
        states = {name: mapping.pdk.cells[name].state_pin for name in mapping.pdk.flip_flops}
        watch = mapping.pdk.plain_flip_flop if mapping.gated else None
        self._netlist = timing_netlist(design, list(mapping.blocks), states, watch)
        (self._folder / "timing.v").write_text(self._netlist.verilog, "utf-8")
        if mapping.macros:
            text = macro_liberty(mapping.macros, mapping.pdk)
            (self._folder / "macros.lib").write_text(text, "utf-8")
        ports = design["modules"][mapping.top]["ports"]
        if CLOCK_PORT not in ports:
            raise TargetError(f"design {mapping.top} must have the port {CLOCK_PORT!r}")
        self._clock = port_name(list(ports).index(CLOCK_PORT), CLOCK_PORT)

    @property
    def mapping(self) -> Mapping:
        """Returns the mapping of the design."""
        return self._mapping

    def run(self, step: str, commands: Sequence[str], *, period_ns: float) -> str:
        """Runs OpenSTA on some commands, and returns its output.

        Parameters
        ----------
        step : str
            Names the files of the script and of the log.
        commands : sequence of str
            Run when the design is linked and its clock made.
        period_ns : float
            The clock's.

        Raises
        ------
        TargetError
            If OpenSTA cannot be run, or finds an error.
        """
        load = _LOAD.format(
            macros="read_liberty macros.lib\n" if self._mapping.macros else "",
            top=self._mapping.top,
            period=period_ns,
            clock=self._clock,
        )
        script = self._folder / f"{step}.tcl"
        return opensta.run(self._program, step, [*load.splitlines(), *commands], script)

    def place(self, instance: str) -> Place:
        """Finds the place of an instance by the path that OpenSTA gives: ``b12/b3/r45``."""
        module, block = self._mapping.top, list[str]()
        for name in instance.split("/"):
            if name in self._netlist.blocks[module]:
                inner, kind = self._netlist.blocks[module][name]
                if kind not in self._mapping.blocks:
                    return Place(tuple(block), inner)
                block.append(inner)
                module = kind
            else:
                register = self._netlist.registers[module].get(name)
                return Place(tuple(block), "" if register is None else _bit(*register))
        return Place(tuple(block), "")


def _bit(name: str, bit: int) -> str:
    return f"{name}[{bit}]"

"""Cuts a block out of its design, to measure its power alone.

Each bit that comes into the block or leaves it is a port. Every register takes its input from a
port as well, which changes as the register did. The reason: OpenSTA 2.0 knows the activity of ports
only, and derives that of a register's output from its input.

Clock gates are left out, and what they would stop gets the clock itself: to OpenSTA a cell whose
clock is a port with an activity has none, and takes no power. :mod:`.gate_power` has what gates
change.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .cell_models import instance_text
from .clock_gating import ENABLE, NAME, clocks_before, registers_behind
from .loads import Loads, PortBit, output_bits
from .pdk import Pdk

Bit = int | str
CLOCK = "clk"


@dataclass(frozen=True)
class Source:
    """A start of signals in a block: a register, or a bit that comes into it.

    Parameters
    ----------
    port : str
        Of the netlist: the block's input, or the register's.
    names : tuple of (name, bit)
        What the gateware calls it, below the block's path.
    """

    port: str
    names: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GatedClock:
    """A clock gate in a block.

    Parameters
    ----------
    cells : tuple of str
        Those of the registers behind it.
    registers : tuple of tuple of (name, bit)
        What the gateware calls each of them, below the block's path.
    """

    cells: tuple[str, ...]
    registers: tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True)
class PowerNetlist:
    """Holds the netlist of a block's own cells.

    Parameters
    ----------
    verilog : str
    sources : tuple of Source
    loads : mapping of float by port
        Pins outside of the block that each output drives.
    clocked : bool
        It has the port ``CLOCK``.
    gates : tuple of GatedClock
        What is left out of the netlist.
    """

    verilog: str
    sources: tuple[Source, ...]
    loads: Mapping[str, float]
    clocked: bool
    gates: tuple[GatedClock, ...] = ()


def power_netlist(
    name: str,
    module: Mapping[str, Any],
    nets: Mapping[int, Loads],
    outside: Mapping[PortBit, float],
    pdk: Pdk,
) -> PowerNetlist:
    """Cuts a module out of its design; blocks and macros in it are outside as well.

    Parameters
    ----------
    name : str
    module : mapping
        As Yosys' ``write_json`` has it.
    nets : mapping of Loads
        Of the module, as ``LoadCounter.nets`` has it.
    outside : mapping of float by port and bit
        Pins that its outputs drive, as ``outer_loads`` has it.
    pdk : Pdk
    """
    return _Cut(name, module, nets, outside, pdk).netlist()


class _Cut:
    def __init__(
        self,
        name: str,
        module: Mapping[str, Any],
        nets: Mapping[int, Loads],
        outside: Mapping[PortBit, float],
        pdk: Pdk,
    ) -> None:
        self._name, self._module, self._pdk = name, module, pdk
        self._clocks = {bit for bit, loads in nets.items() if loads.clock}
        self._names = _names(module)
        self._data = {name: pdk.cells[name].data_pin for name in pdk.flip_flops}
        self._incoming = dict(self._find_incoming())
        self._outgoing = self._find_outgoing(nets, outside)
        self._before = clocks_before(module)

    def netlist(self) -> PowerNetlist:
        inputs = {bit: CLOCK if bit in self._clocks else f"i{bit}" for bit in self._incoming}
        outputs = {
            bit: f"o{bit}" for bit, load in self._outgoing.items() if load and bit not in inputs
        }
        self._nets = {**inputs, **outputs}
        given = [*dict.fromkeys(inputs.values())]
        cells, sources = self._cells()
        given += [source.port for source in sources]
        for bit, names in self._incoming.items():
            if bit not in self._clocks:
                own = (*names, *self._names.get(bit, ()))
                sources.append(Source(inputs[bit], own))
        text = "\n".join(
            [
                f"module {self._name} ({', '.join([*given, *outputs.values()])});",
                *(f"  input {port};" for port in given),
                *(f"  output {port};" for port in outputs.values()),
                *cells,
                "endmodule",
                "",
            ]
        )
        loads = {port: self._outgoing[bit] for bit, port in outputs.items()}
        gates = tuple(self._gates())
        return PowerNetlist(text, tuple(sources), loads, CLOCK in given, gates)

    def _gates(self) -> Iterator[GatedClock]:
        for cells in registers_behind(self._module, self._pdk).values():
            states = ((cell, self._pdk.cells[cell["type"]].state_pin) for cell in cells)
            names = (self._names.get(cell["connections"][pin][0], ()) for cell, pin in states)
            yield GatedClock(tuple(cell["type"] for cell in cells), tuple(map(tuple, names)))

    def _is_own(self, cell: Mapping[str, Any]) -> bool:
        return cell["type"] in self._pdk.cells

    def _find_incoming(self) -> Iterator[tuple[int, list[tuple[str, int]]]]:
        """Finds nets that begin outside of the cells, with the names of the ports there."""
        for port, about in self._module["ports"].items():
            if about["direction"] == "input":
                yield from ((bit, [(port, k)]) for k, bit in _numbered(about["bits"]))
        for instance, cell in self._module["cells"].items():
            if self._is_own(cell):
                continue
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    names = f"{instance}.{port}"
                    yield from ((bit, [(names, k)]) for k, bit in _numbered(bits))

    def _find_outgoing(
        self, nets: Mapping[int, Loads], outside: Mapping[PortBit, float]
    ) -> dict[int, float]:
        """Counts the pins outside of the cells that nets drive."""
        found = dict[int, float]()
        for bit, loads in nets.items():
            beyond = sum(weight for weight, pins in loads.pins if not self._is_own(pins[0][0]))
            found[bit] = float(beyond)
        for port, k, bit in output_bits(self._module):
            if isinstance(bit, int):
                found[bit] = found.get(bit, 0.0) + outside.get((port, k), 0.0)
        for cell in self._module["cells"].values():
            # its register takes a port instead
            if (pin := self._data.get(cell["type"])) is not None:
                for _, bit in _numbered(cell["connections"][pin]):
                    found[bit] = found.get(bit, 0.0) + 1
            elif cell["type"] == NAME:
                for _, bit in _numbered(cell["connections"][ENABLE]):
                    found[bit] = found.get(bit, 0.0) + 1
        return found

    def _cells(self) -> tuple[list[str], list[Source]]:
        lines, registers = list[str](), list[Source]()
        for number, cell in enumerate(self._module["cells"].values()):
            kind = cell["type"]
            if not self._is_own(cell) or kind == NAME:
                continue
            nets = {pin: self._net(bits[0]) for pin, bits in cell["connections"].items() if bits}
            if (data := self._data.get(kind)) is not None:
                held = cell["connections"].get(self._pdk.cells[kind].state_pin, [None])[0]
                nets[data] = f"d{number}"
                registers.append(Source(nets[data], tuple(self._names.get(held, ()))))
            lines.append(f"  {instance_text(kind, f'u{number}', nets)}")
        return lines, registers

    def _net(self, bit: Bit) -> str:
        if isinstance(bit, str):
            return "1'b1" if bit == "1" else "1'b0"
        net = self._before.get(bit, bit)
        return self._nets.setdefault(net, f"n{net}")


def _numbered(bits: Sequence[Bit]) -> Iterator[tuple[int, int]]:
    return ((k, bit) for k, bit in enumerate(bits) if isinstance(bit, int))


def _names(module: Mapping[str, Any]) -> dict[int, list[tuple[str, int]]]:
    """Returns the public names of each net."""
    found = dict[int, list[tuple[str, int]]]()
    for name, net in module["netnames"].items():
        if not net["hide_name"]:
            # Yosys marks a public name that begins with a dollar
            public = name.removeprefix("\\")
            for k, bit in _numbered(net["bits"]):
                found.setdefault(bit, []).append((public, k))
    return found
